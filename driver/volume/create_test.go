package volume

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

var gib = CreateSpec{Name: "pvc-1", Size: Range{Required: GiB(1)}}

func TestCreateReturnsOnceTheVolumeIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		v, err := service(c).Create(within(t, 60), CreateSpec{
			Name: "pvc-1", Size: Range{Required: GiB(1) + 1}, Type: "fast", Zones: []string{"az2", "az1"}, Metadata: map[string]string{"team": "storage"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := Volume{
			ID: id(101), Name: "pvc-1", Status: Available, Size: GiB(2), Type: "fast", Zone: "az2", CreatedAt: v.CreatedAt, Description: contract.Description,
			Metadata: map[string]string{
				"team": "storage", contract.MetadataCluster: "cluster", contract.MetadataRequest: v.Metadata[contract.MetadataRequest],
				contract.MetadataSent: v.Metadata[contract.MetadataSent],
			},
		}
		if diff := cmp.Diff(want, v); diff != "" {
			t.Error("-want +got\n", diff)
		}
		if len(v.Metadata[contract.MetadataRequest]) != 32 {
			t.Errorf("no request token in %v", v.Metadata)
		}
	})
}

func TestCreateAgainFindsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		first, err := s.Create(within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Create(within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" || c.count("CreateVolume") != 1 {
			t.Error("calls:", c.calls, "-first +second\n", diff)
		}
	})
}

func TestCreateIsResumedAfterADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Create(ctx, gib)
		wantKind(t, err, DeadlineExceeded, true)
		if !strings.Contains(err.Error(), "it is creating") {
			t.Errorf("the error does not say how the volume looked: %v", err)
		}
		v, err := s.Create(within(t, 60), gib)
		if err != nil || v.Status != Available || c.count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.calls)
		}
	})
}

func TestCreateAfterALostAnswerFindsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		c.hook["CreateVolume"] = func() {
			c.volumes[id(1)] = new(ofOurs(1, Available))
			c.fail["CreateVolume"] = errLost
		}
		_, err := s.Create(within(t, 60), gib)
		wantKind(t, err, Unavailable, true)
		v, err := s.Create(within(t, 60), gib)
		if err != nil || v.ID != id(1) || c.count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.calls)
		}
	})
}

// Whether an error is final its kind says, once it is certain that nothing was created.
func TestACreateThatWasRefusedOrNotSentLeavesNothing(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.fail["CreateVolume"] = Errorf(kind, "no")
				_, err := service(c).Create(within(t, 60), gib)
				if kind == NotHere {
					kind = InvalidArgument // no zone was asked for: there is none to change
				}
				wantKind(t, err, kind, false)
			})
		})
	}
}

func TestAnAnswerThatMayHaveBeenLostIsNeverFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.fail["CreateVolume"] = Errorf(InvalidArgument, "a proxy's answer").AfterWrite()
		_, err := service(c).Create(within(t, 60), gib)
		wantKind(t, err, InvalidArgument, true)
	})
}

func TestWhileTheNameCannotBeLookedUpAnEarlierVolumeMayExist(t *testing.T) {
	for _, kind := range Kinds() {
		c := newCloud()
		c.fail["VolumesNamed"] = Errorf(kind, "no")
		_, err := service(c).Create(t.Context(), gib)
		wantKind(t, err, kind, true)
		if c.count("CreateVolume") != 0 {
			t.Errorf("%s: a volume was asked for", kind)
		}
	}
}

func TestAVolumeThatCinderCannotMakeIsRemovedAndTheReasonTold(t *testing.T) {
	for reason, kind := range map[string]Kind{
		"": Failed,
		"create volume from backend storage:Driver failed to create the volume.":                                                                          Failed,
		"schedule allocate volume:Could not find any available weighted backend.":                                                                         Exhausted,
		"create volume from backend storage:Driver failed to create the volume.; schedule allocate volume:Could not find any available weighted backend.": Failed,
	} {
		t.Run(kind.String()+" "+reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.outcome, c.reason = "error", reason
				_, err := service(c).Create(within(t, 60), gib)
				wantKind(t, err, kind, false)
				if !strings.Contains(err.Error(), reason) {
					t.Errorf("the reason %q is not in %v", reason, err)
				}
				if len(c.volumes) != 0 {
					t.Errorf("left over: %v", c.volumes)
				}
			})
		})
	}
}

func TestAFailedVolumeThatCannotBeRemovedIsPursued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.outcome = "error"
		c.fail["DeleteVolume"] = Errorf(Conflict, "it has snapshots")
		_, err := service(c).Create(within(t, 60), gib)
		wantKind(t, err, Conflict, true)
	})
}

func TestAFailedVolumeOfSomeoneElseIsNeverRemoved(t *testing.T) {
	otherName, otherCluster, attached := ofOurs(1, "error"), ofOurs(1, "error"), ofOurs(1, "error")
	otherName.Metadata[contract.MetadataRequest] = testOwner.Token("pvc-2")
	otherCluster.Metadata[contract.MetadataCluster] = "another"
	attached.Attachments = []Attachment{{Server: serverA}}
	for name, v := range map[string]Volume{"no token": ofOthers(1, "error"), "another request's token": otherName, "another cluster": otherCluster, "attached": attached} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(v)
			_, err := service(c).Create(t.Context(), gib)
			wantKind(t, err, Failed, true)
			if c.count("DeleteVolume") != 0 {
				t.Errorf("it was deleted: %v", c.calls)
			}
		})
	}
}

func TestAVolumeThatDiffersIsIncompatible(t *testing.T) {
	for name, change := range map[string]func(v *Volume, w *CreateSpec){
		"smaller":             func(_ *Volume, w *CreateSpec) { w.Size.Required = GiB(2) },
		"above the limit":     func(v *Volume, w *CreateSpec) { v.Size = GiB(3); w.Size.Limit = GiB(2) },
		"another type":        func(v *Volume, w *CreateSpec) { v.Type = "standard"; w.Type = "fast" },
		"cloned":              func(v *Volume, _ *CreateSpec) { v.SourceID = id(9) },
		"not a clone":         func(_ *Volume, w *CreateSpec) { w.Source = id(9) },
		"from a snapshot":     func(v *Volume, _ *CreateSpec) { v.SnapshotID = "s" },
		"for one server only": func(_ *Volume, w *CreateSpec) { w.Shared = true },
	} {
		t.Run(name, func(t *testing.T) {
			v, w := ofOurs(1, Available), gib
			change(&v, &w)
			c := newCloud(v)
			_, err := service(c).Create(t.Context(), w)
			wantKind(t, err, Incompatible, false)
			if c.count("DeleteVolume") != 0 {
				t.Error("it was deleted")
			}
		})
	}
}

func TestNamesAndIDsMayBeInAnotherCase(t *testing.T) {
	const upper, lower = "AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001"
	for name, change := range map[string]func(v *Volume, w *CreateSpec){
		"type":     func(v *Volume, w *CreateSpec) { v.Type, w.Type = "fast", "FAST" },
		"source":   func(v *Volume, w *CreateSpec) { v.SourceID, w.Source = lower, upper },
		"snapshot": func(v *Volume, w *CreateSpec) { v.SnapshotID, w.Snapshot = lower, upper },
	} {
		t.Run(name, func(t *testing.T) {
			v, w := ofOurs(1, Available), gib
			change(&v, &w)
			got, err := service(newCloud(v)).Create(t.Context(), w)
			if err != nil || got.ID != v.ID {
				t.Errorf("want %s, got %v, %v", v.ID, got, err)
			}
		})
	}
}

func TestAVolumeThatCinderMadeOtherwiseThanAskedIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.create = func(_ CreateOptions, v *Volume) error { v.Type = "cheap"; return nil }
		w := gib
		w.Type = "fast"
		_, err := service(c).Create(within(t, 60), w)
		wantKind(t, err, Failed, false)
		if len(c.volumes) != 0 || !strings.Contains(err.Error(), `"cheap"`) {
			t.Errorf("%v; left: %v", err, c.volumes)
		}
		c.fail["DeleteVolume"] = Errorf(Unavailable, "no answer").AfterWrite()
		_, err = service(c).Create(within(t, 60), w)
		wantKind(t, err, Unavailable, true)
	})
}

func TestAVolumeThatIsLargerOrOfAnIDsTypeOrInAnotherZoneIsCompatible(t *testing.T) {
	v := ofOurs(1, Available)
	v.Size, v.Type, v.Zone = GiB(5), "fast", "nova"
	w := gib
	w.Type, w.Zones = "f61b0000-0000-4000-8000-000000000000", []string{"az1"}
	got, err := service(newCloud(v)).Create(t.Context(), w)
	if err != nil || got.Zone != "nova" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOfSeveralTheOldestCountsAndOnlyOurUnusedYoungerOnesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		aged := func(v Volume, seconds int) Volume { return createdAt(v, start.Add(time.Duration(seconds)*time.Second)) }
		attached := aged(ofOurs(5, InUse), 9)
		attached.Attachments = []Attachment{{Server: serverA}}
		c := newCloud(aged(ofOurs(3, Available), 5), aged(ofOthers(4, Available), 0), aged(ofOurs(1, Available), 0), aged(ofOthers(2, Available), 7), attached)
		v, err := service(c).Create(within(t, 60), gib)
		if err != nil || v.ID != id(1) {
			t.Fatalf("want the oldest, then lowest id, %s; got %v, %v", id(1), v, err)
		}
		if c.count("DeleteVolume") != 1 || c.volumes[id(3)] != nil {
			t.Errorf("want only %s removed: %v", id(3), c.calls)
		}
	})
}

func TestOfTwoMadeInTheSameSecondNoneIsRemovedByALaterCall(t *testing.T) {
	c := newCloud(ofOurs(1, Available), ofOurs(2, Available))
	v, err := service(c).Create(t.Context(), gib)
	if err != nil || v.ID != id(1) || c.count("DeleteVolume") != 0 {
		t.Errorf("got %v, %v, %v", v, err, c.calls)
	}
}

func TestTwoReplicasAtOnceEndWithOneVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		older := ofOurs(1, Available)
		older.CreatedAt = time.Now().Add(-time.Second)
		c.hook["CreateVolume"] = func() { c.volumes[older.ID] = &older }
		v, err := service(c).Create(within(t, 60), gib)
		if err != nil || v.ID != older.ID || len(c.volumes) != 1 {
			t.Errorf("got %v, %v; left %v", v, err, c.volumes)
		}
	})
}

func TestAVolumeOfTheNameThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Deleting))
		time.AfterFunc(time.Second, func() { c.remove(id(1)) })
		v, err := service(c).Create(within(t, 60), gib)
		if err != nil || v.ID == id(1) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAVolumeThatVanishesWhileItIsMadeIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		time.AfterFunc(500*time.Millisecond, func() { c.remove(id(101)) })
		_, err := service(c).Create(within(t, 60), gib)
		wantKind(t, err, Busy, true)
	})
}

func TestSharingNeedsAMultiattachTypeAndLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		w := gib
		w.Shared = true
		_, err := service(c).Create(within(t, 60), w)
		wantKind(t, err, InvalidArgument, false)
		if len(c.volumes) != 0 {
			t.Errorf("left over: %v", c.volumes)
		}
	})
}

func TestAWishThatCannotBeIsRefusedBeforeTheCloudIsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		wish CreateSpec
		kind Kind
	}{
		"no name":       {CreateSpec{}, InvalidArgument},
		"negative":      {CreateSpec{Name: "a", Size: Range{Required: -1}}, InvalidArgument},
		"no GiB fits":   {CreateSpec{Name: "a", Size: Range{Required: 1, Limit: 2}}, OutOfRange},
		"limit too low": {CreateSpec{Name: "a", Size: Range{Required: GiB(3), Limit: GiB(2)}}, OutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud()
			_, err := service(c).Create(t.Context(), test.wish)
			wantKind(t, err, test.kind, false)
			if len(c.calls) != 0 {
				t.Error(c.calls)
			}
		})
	}
}

func TestAClone(t *testing.T) {
	source := Volume{ID: id(1), Name: "source", Status: InUse, Size: GiB(2), Zone: "az 2"}
	for name, test := range map[string]struct {
		wish CreateSpec
		zone string
		kind Kind
	}{
		"without a zone goes to its source's":  {wish: CreateSpec{Size: Range{Required: GiB(2)}}, zone: "az 2"},
		"with a label of that zone too":        {wish: CreateSpec{Size: Range{Required: GiB(2)}, Zones: []string{"az1", "az-2"}}, zone: "az 2"},
		"into another zone is for elsewhere":   {wish: CreateSpec{Size: Range{Required: GiB(2)}, Zones: []string{"az1"}}, kind: NotHere},
		"that is smaller is out of range":      {wish: CreateSpec{Size: Range{Required: GiB(1)}}, kind: OutOfRange},
		"of a volume that is not there":        {wish: CreateSpec{Size: Range{Required: GiB(1)}, Source: id(7)}, kind: NotFound},
		"of a volume that cannot be: no UUID":  {wish: CreateSpec{Size: Range{Required: GiB(1)}, Source: "../types"}, kind: NotFound},
		"may be larger than what it came from": {wish: CreateSpec{Size: Range{Required: GiB(9)}}, zone: "az 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).sameZoneOnly(source.Zone)
				w := test.wish
				w.Name = "clone"
				if w.Source == "" {
					w.Source = source.ID
				}
				v, err := service(c).Create(within(t, 60), w)
				if test.zone == "" {
					wantKind(t, err, test.kind, false)
					return
				}
				if err != nil || v.Zone != test.zone || v.SourceID != source.ID {
					t.Errorf("got %v, %v", v, err)
				}
			})
		})
	}
}

func TestTwoCallsForOneNameDoNotMixUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		first := make(chan error, 1)
		go func() {
			_, err := s.Create(within(t, 60), gib)
			first <- err
		}()
		synctest.Wait()
		_, err := s.Create(within(t, 60), gib)
		wantKind(t, err, Busy, true)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// testCreateIn: a volume of ours in that status is there already and stays as it is.
func testCreateIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, status))
		v, err := service(c).Create(within(t, 60), gib)
		switch status.Meaning().Create {
		case Proceed:
			if err != nil || v.ID != id(1) {
				t.Errorf("got %v, %v", v, err)
			}
		case Refuse:
			if status != "error_deleting" {
				wantKind(t, err, Failed, false)
			}
			if c.count("DeleteVolume") != 1 {
				t.Error("it was not removed")
			}
		default:
			wantKind(t, err, DeadlineExceeded, true)
		}
		if c.count("CreateVolume") != 0 {
			t.Error("another was asked for")
		}
	})
}

func TestErrorsKeepTheirCause(t *testing.T) {
	cause := Errorf(NotFound, "no volume").Request("req-1").AfterWrite()
	err := Errorf(Busy, "while detaching: %w", cause)
	if !errors.Is(err, cause) || !MayHaveWritten(err) || KindOf(err) != Busy || !strings.Contains(err.Error(), "req-1") {
		t.Errorf("got %v", err)
	}
	if AfterWrite(nil) != nil {
		t.Error("an error out of nothing")
	}
	if got := AfterWrite(context.DeadlineExceeded); KindOf(got) != DeadlineExceeded || !MayHaveWritten(got) {
		t.Errorf("got %v", got)
	}
}

// The answer to the create was lost, so that a later call finds the volume: nobody was told of it.
func TestAVolumeThatCannotBeSharedGoesInALaterCallToo(t *testing.T) {
	for name, test := range map[string]struct {
		forSeveral bool
		kind       Kind
		left       int
	}{
		"made for several servers": {true, InvalidArgument, 0},
		"made for one":             {false, Incompatible, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				w := gib
				w.Shared = test.forSeveral
				earlier := ofOurs(1, Available)
				earlier.Metadata = service(c).createMetadata(w)
				c.volumes[earlier.ID] = &earlier
				w.Shared = true
				_, err := service(c).Create(within(t, 60), w)
				wantKind(t, err, test.kind, false)
				if len(c.volumes) != test.left {
					t.Errorf("want %d left, got %v", test.left, c.volumes)
				}
			})
		})
	}
}

// What a create does with a volume in each status: the requests it sends, the end it comes to.
func TestCreateInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) { testCreateIn(t, status) })
	}
}
