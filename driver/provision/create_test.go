package provision

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

var gib = CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}}

func TestCreateReturnsOnceTheVolumeIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		v, err := service(c).Create(volumetest.Within(t, 60), CreateSpec{
			Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1) + 1}, Type: "fast", Zones: []string{"az2", "az1"}, Metadata: map[string]string{"team": "storage"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := volume.Volume{
			ID: volumetest.VolumeID(101), Name: "pvc-1", Status: volume.Available, Size: volume.GiB(2), Type: "fast", Zone: "az2", CreatedAt: v.CreatedAt, Description: contract.Description,
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

func TestCreateTwiceReturnsTheSameVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		s := service(c)
		first, err := s.Create(volumetest.Within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Create(volumetest.Within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" || c.Count("CreateVolume") != 1 {
			t.Error("calls:", c.Calls, "-first +second\n", diff)
		}
	})
}

func TestCreateResumesAfterADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		s := service(c)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Create(ctx, gib)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		if !strings.Contains(err.Error(), "it is creating") {
			t.Errorf("the error does not say how the volume looked: %v", err)
		}
		v, err := s.Create(volumetest.Within(t, 60), gib)
		if err != nil || v.Status != volume.Available || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

func TestCreateFindsTheVolumeAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		s := service(c)
		c.Hook["CreateVolume"] = func() {
			c.VolumesByID[volumetest.VolumeID(1)] = new(volumetest.OwnVolume(1, volume.Available))
			c.Fail["CreateVolume"] = volumetest.ErrLost
		}
		_, err := s.Create(volumetest.Within(t, 60), gib)
		volumetest.WantKind(t, err, volume.Unavailable, true)
		v, err := s.Create(volumetest.Within(t, 60), gib)
		if err != nil || v.ID != volumetest.VolumeID(1) || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

// Once it is certain that nothing was created, only the kind of the error decides whether it is final.
func TestCreateThatWasRefusedOrNotSentIsFinal(t *testing.T) {
	for _, kind := range volume.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud()
				c.Fail["CreateVolume"] = volume.Errorf(kind, "no")
				_, err := service(c).Create(volumetest.Within(t, 60), gib)
				if kind == volume.NotInZone {
					kind = volume.InvalidArgument // no zone was asked for: there is none to change
				}
				volumetest.WantKind(t, err, kind, false)
			})
		})
	}
}

func TestCreateIsNeverFinalAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		c.Fail["CreateVolume"] = volume.Errorf(volume.InvalidArgument, "a proxy's answer").AfterWrite()
		_, err := service(c).Create(volumetest.Within(t, 60), gib)
		volumetest.WantKind(t, err, volume.InvalidArgument, true)
	})
}

func TestCreateIsNeverFinalWhileTheNameCannotBeRead(t *testing.T) {
	for _, kind := range volume.Kinds() {
		c := volumetest.NewCloud()
		c.Fail["VolumesNamed"] = volume.Errorf(kind, "no")
		_, err := service(c).Create(t.Context(), gib)
		volumetest.WantKind(t, err, kind, true)
		if c.Count("CreateVolume") != 0 {
			t.Errorf("%s: a volume was asked for", kind)
		}
	}
}

func TestCreateDeletesAFailedVolumeAndReturnsTheReason(t *testing.T) {
	for reason, kind := range map[string]volume.Kind{
		"": volume.Failed,
		"create volume from backend storage:Driver failed to create the volume.":                                                                          volume.Failed,
		"schedule allocate volume:Could not find any available weighted backend.":                                                                         volume.Exhausted,
		"create volume from backend storage:Driver failed to create the volume.; schedule allocate volume:Could not find any available weighted backend.": volume.Failed,
	} {
		t.Run(kind.String()+" "+reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud()
				c.Outcome, c.Reason = "error", reason
				_, err := service(c).Create(volumetest.Within(t, 60), gib)
				volumetest.WantKind(t, err, kind, false)
				if !strings.Contains(err.Error(), strings.TrimSuffix(reason, ".")) {
					t.Errorf("the reason %q is not in %v", reason, err)
				}
				if len(c.VolumesByID) != 0 {
					t.Errorf("left over: %v", c.VolumesByID)
				}
			})
		})
	}
}

func TestCreateIsRetryableWhereTheFailedVolumeCannotBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		c.Outcome = "error"
		c.Fail["DeleteVolume"] = volume.Errorf(volume.Conflict, "it has snapshots")
		_, err := service(c).Create(volumetest.Within(t, 60), gib)
		volumetest.WantKind(t, err, volume.Conflict, true)
	})
}

func TestCreateNeverDeletesAFailedVolumeThatItDoesNotOwn(t *testing.T) {
	otherName, otherCluster, attached := volumetest.OwnVolume(1, "error"), volumetest.OwnVolume(1, "error"), volumetest.OwnVolume(1, "error")
	otherName.Metadata[contract.MetadataRequest] = volumetest.TestOwner.Token("pvc-2")
	otherCluster.Metadata[contract.MetadataCluster] = "another"
	attached.Attachments = []volume.Attachment{{Server: volumetest.ServerA}}
	for name, v := range map[string]volume.Volume{"no token": volumetest.ForeignVolume(1, "error"), "another request's token": otherName, "another cluster": otherCluster, "attached": attached} {
		t.Run(name, func(t *testing.T) {
			c := volumetest.NewCloud(v)
			_, err := service(c).Create(t.Context(), gib)
			volumetest.WantKind(t, err, volume.Failed, true)
			if c.Count("DeleteVolume") != 0 {
				t.Errorf("it was deleted: %v", c.Calls)
			}
		})
	}
}

func TestCreateWithAVolumeThatDiffersIsIncompatible(t *testing.T) {
	for name, change := range map[string]func(v *volume.Volume, spec *CreateSpec){
		"smaller":             func(_ *volume.Volume, spec *CreateSpec) { spec.Size.Required = volume.GiB(2) },
		"above the limit":     func(v *volume.Volume, spec *CreateSpec) { v.Size = volume.GiB(3); spec.Size.Limit = volume.GiB(2) },
		"another type":        func(v *volume.Volume, spec *CreateSpec) { v.Type = "standard"; spec.Type = "fast" },
		"cloned":              func(v *volume.Volume, _ *CreateSpec) { v.SourceID = volumetest.VolumeID(9) },
		"not a clone":         func(_ *volume.Volume, spec *CreateSpec) { spec.Source = volumetest.VolumeID(9) },
		"from a snapshot":     func(v *volume.Volume, _ *CreateSpec) { v.SnapshotID = "s" },
		"for one server only": func(_ *volume.Volume, spec *CreateSpec) { spec.Multiattach = true },
	} {
		t.Run(name, func(t *testing.T) {
			v, spec := volumetest.OwnVolume(1, volume.Available), gib
			change(&v, &spec)
			c := volumetest.NewCloud(v)
			_, err := service(c).Create(t.Context(), spec)
			volumetest.WantKind(t, err, volume.Incompatible, false)
			if c.Count("DeleteVolume") != 0 {
				t.Error("it was deleted")
			}
		})
	}
}

func TestCreateComparesNamesAndIDsWithoutCase(t *testing.T) {
	const upper, lower = "AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001"
	for name, change := range map[string]func(v *volume.Volume, spec *CreateSpec){
		"type":     func(v *volume.Volume, spec *CreateSpec) { v.Type, spec.Type = "fast", "FAST" },
		"source":   func(v *volume.Volume, spec *CreateSpec) { v.SourceID, spec.Source = lower, upper },
		"snapshot": func(v *volume.Volume, spec *CreateSpec) { v.SnapshotID, spec.Snapshot = lower, upper },
	} {
		t.Run(name, func(t *testing.T) {
			v, spec := volumetest.OwnVolume(1, volume.Available), gib
			change(&v, &spec)
			got, err := service(volumetest.NewCloud(v)).Create(t.Context(), spec)
			if err != nil || got.ID != v.ID {
				t.Errorf("want %s, got %v, %v", v.ID, got, err)
			}
		})
	}
}

func TestCreateDeletesItsVolumeThatDiffersFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		c.Create = func(_ volume.CreateOptions, v *volume.Volume) error { v.Type = "cheap"; return nil }
		spec := gib
		spec.Type = "fast"
		_, err := service(c).Create(volumetest.Within(t, 60), spec)
		volumetest.WantKind(t, err, volume.Failed, false)
		if len(c.VolumesByID) != 0 || !strings.Contains(err.Error(), `"cheap"`) {
			t.Errorf("%v; left: %v", err, c.VolumesByID)
		}
		c.Fail["DeleteVolume"] = volume.Errorf(volume.Unavailable, "no answer").AfterWrite()
		_, err = service(c).Create(volumetest.Within(t, 60), spec)
		volumetest.WantKind(t, err, volume.Unavailable, true)
	})
}

func TestCreateAcceptsALargerVolumeAnyTypeIDAndAnotherZone(t *testing.T) {
	v := volumetest.OwnVolume(1, volume.Available)
	v.Size, v.Type, v.Zone = volume.GiB(5), "fast", "nova"
	spec := gib
	spec.Type, spec.Zones = "f61b0000-0000-4000-8000-000000000000", []string{"az1"}
	got, err := service(volumetest.NewCloud(v)).Create(t.Context(), spec)
	if err != nil || got.Zone != "nova" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCreateReturnsTheOldestAndDeletesOnlyItsOwnUnusedDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		aged := func(v volume.Volume, seconds int) volume.Volume {
			return volumetest.CreatedAt(v, start.Add(time.Duration(seconds)*time.Second))
		}
		attached := aged(volumetest.OwnVolume(5, volume.InUse), 9)
		attached.Attachments = []volume.Attachment{{Server: volumetest.ServerA}}
		c := volumetest.NewCloud(aged(volumetest.OwnVolume(3, volume.Available), 5), aged(volumetest.ForeignVolume(4, volume.Available), 0), aged(volumetest.OwnVolume(1, volume.Available), 0), aged(volumetest.ForeignVolume(2, volume.Available), 7), attached)
		v, err := service(c).Create(volumetest.Within(t, 60), gib)
		if err != nil || v.ID != volumetest.VolumeID(1) {
			t.Fatalf("want the oldest, then lowest id, %s; got %v, %v", volumetest.VolumeID(1), v, err)
		}
		if c.Count("DeleteVolume") != 1 || c.VolumesByID[volumetest.VolumeID(3)] != nil {
			t.Errorf("want only %s removed: %v", volumetest.VolumeID(3), c.Calls)
		}
	})
}

func TestCreateKeepsDuplicatesOfTheSameSecond(t *testing.T) {
	c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available), volumetest.OwnVolume(2, volume.Available))
	v, err := service(c).Create(t.Context(), gib)
	if err != nil || v.ID != volumetest.VolumeID(1) || c.Count("DeleteVolume") != 0 {
		t.Errorf("got %v, %v, %v", v, err, c.Calls)
	}
}

func TestCreateByTwoReplicasEndsWithOneVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		older := volumetest.OwnVolume(1, volume.Available)
		older.CreatedAt = time.Now().Add(-time.Second)
		c.Hook["CreateVolume"] = func() { c.VolumesByID[older.ID] = &older }
		v, err := service(c).Create(volumetest.Within(t, 60), gib)
		if err != nil || v.ID != older.ID || len(c.VolumesByID) != 1 {
			t.Errorf("got %v, %v; left %v", v, err, c.VolumesByID)
		}
	})
}

func TestCreateWaitsForADeletionOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Deleting))
		time.AfterFunc(time.Second, func() { c.Remove(volumetest.VolumeID(1)) })
		v, err := service(c).Create(volumetest.Within(t, 60), gib)
		if err != nil || v.ID == volumetest.VolumeID(1) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestCreateIsRetryableWhereTheVolumeDisappears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		time.AfterFunc(500*time.Millisecond, func() { c.Remove(volumetest.VolumeID(101)) })
		_, err := service(c).Create(volumetest.Within(t, 60), gib)
		volumetest.WantKind(t, err, volume.Busy, true)
	})
}

func TestCreateForSeveralServersNeedsAMultiattachType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		spec := gib
		spec.Multiattach = true
		_, err := service(c).Create(volumetest.Within(t, 60), spec)
		volumetest.WantKind(t, err, volume.InvalidArgument, false)
		if len(c.VolumesByID) != 0 {
			t.Errorf("left over: %v", c.VolumesByID)
		}
	})
}

func TestCreateValidatesBeforeItCallsTheCloud(t *testing.T) {
	for name, test := range map[string]struct {
		spec CreateSpec
		kind volume.Kind
	}{
		"no name":       {CreateSpec{}, volume.InvalidArgument},
		"negative":      {CreateSpec{Name: "a", Size: volume.Range{Required: -1}}, volume.InvalidArgument},
		"no GiB fits":   {CreateSpec{Name: "a", Size: volume.Range{Required: 1, Limit: 2}}, volume.OutOfRange},
		"limit too low": {CreateSpec{Name: "a", Size: volume.Range{Required: volume.GiB(3), Limit: volume.GiB(2)}}, volume.OutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			c := volumetest.NewCloud()
			_, err := service(c).Create(t.Context(), test.spec)
			volumetest.WantKind(t, err, test.kind, false)
			if len(c.Calls) != 0 {
				t.Error(c.Calls)
			}
		})
	}
}

func TestCreateFromAVolume(t *testing.T) {
	source := volume.Volume{ID: volumetest.VolumeID(1), Name: "source", Status: volume.InUse, Size: volume.GiB(2), Zone: "az 2"}
	for name, test := range map[string]struct {
		spec CreateSpec
		zone string
		kind volume.Kind
	}{
		"without a zone goes to its source's":  {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}}, zone: "az 2"},
		"with a label of that zone too":        {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}, Zones: []string{"az1", "az-2"}}, zone: "az 2"},
		"into another zone":                    {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}, Zones: []string{"az1"}}, kind: volume.NotInZone},
		"that is smaller":                      {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}}, kind: volume.OutOfRange},
		"of a volume that is not there":        {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}, Source: volumetest.VolumeID(7)}, kind: volume.NotFound},
		"of a volume that cannot be: no UUID":  {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}, Source: "../types"}, kind: volume.NotFound},
		"may be larger than what it came from": {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(9)}}, zone: "az 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(source).SameZoneOnly(source.Zone)
				spec := test.spec
				spec.Name = "clone"
				if spec.Source == "" {
					spec.Source = source.ID
				}
				v, err := service(c).Create(volumetest.Within(t, 60), spec)
				if test.zone == "" {
					volumetest.WantKind(t, err, test.kind, false)
					return
				}
				if err != nil || v.Zone != test.zone || v.SourceID != source.ID {
					t.Errorf("got %v, %v", v, err)
				}
			})
		})
	}
}

func TestCreateTwiceAtOnceIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud()
		s := service(c)
		first := make(chan error, 1)
		go func() {
			_, err := s.Create(volumetest.Within(t, 60), gib)
			first <- err
		}()
		synctest.Wait()
		_, err := s.Create(volumetest.Within(t, 60), gib)
		volumetest.WantKind(t, err, volume.Busy, true)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// testCreateIn creates a volume whose name a volume of this driver has, in that status.
func testCreateIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, status))
		v, err := service(c).Create(volumetest.Within(t, 60), gib)
		switch status.Meaning().Create {
		case volume.Proceed:
			if err != nil || v.ID != volumetest.VolumeID(1) {
				t.Errorf("got %v, %v", v, err)
			}
		case volume.Refuse:
			if status != "error_deleting" {
				volumetest.WantKind(t, err, volume.Failed, false)
			}
			if c.Count("DeleteVolume") != 1 {
				t.Error("it was not removed")
			}
		default:
			volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		}
		if c.Count("CreateVolume") != 0 {
			t.Error("another was asked for")
		}
	})
}

func TestErrorsKeepTheirCause(t *testing.T) {
	cause := volume.Errorf(volume.NotFound, "no volume").Request("req-1").AfterWrite()
	err := volume.Errorf(volume.Busy, "while detaching: %w", cause)
	if !errors.Is(err, cause) || !volume.MayHaveWritten(err) || volume.KindOf(err) != volume.Busy || !strings.Contains(err.Error(), "req-1") {
		t.Errorf("got %v", err)
	}
	if volume.AfterWrite(nil) != nil {
		t.Error("an error out of nothing")
	}
	if got := volume.AfterWrite(context.DeadlineExceeded); volume.KindOf(got) != volume.DeadlineExceeded || !volume.MayHaveWritten(got) {
		t.Errorf("got %v", got)
	}
}

// The answer to the create was lost, so a later call finds the volume, which no call has returned.
func TestCreateDeletesASingleAttachVolumeOfAnEarlierCall(t *testing.T) {
	for name, test := range map[string]struct {
		multiattach bool
		kind        volume.Kind
		left        int
	}{
		"made for several servers": {true, volume.InvalidArgument, 0},
		"made for one":             {false, volume.Incompatible, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud()
				spec := gib
				spec.Multiattach = test.multiattach
				earlier := volumetest.OwnVolume(1, volume.Available)
				earlier.Metadata = service(c).createMetadata(spec)
				c.VolumesByID[earlier.ID] = &earlier
				spec.Multiattach = true
				_, err := service(c).Create(volumetest.Within(t, 60), spec)
				volumetest.WantKind(t, err, test.kind, false)
				if len(c.VolumesByID) != test.left {
					t.Errorf("want %d left, got %v", test.left, c.VolumesByID)
				}
			})
		})
	}
}

func TestCreateInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testCreateIn(t, status) })
	}
}
