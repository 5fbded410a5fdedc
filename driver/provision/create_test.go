package provision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

var gib = CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}}

func TestCreateReturnsOnceTheVolumeIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		v, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{
			Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1) + 1}, Type: "fast", Zones: []string{"az2", "az1"}, Metadata: map[string]string{"team": "storage"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := volume.Volume{
			ID: v.ID, Name: "pvc-1", Status: volume.Available, Size: volume.GiB(2), Type: "fast", Zone: "az2", CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Description: contract.Description,
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
		c := cloudtest.New(t)
		s := service(c)
		first, err := s.Create(cloudtest.Within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Create(cloudtest.Within(t, 60), gib)
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
		c := cloudtest.New(t)
		s := service(c)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Create(ctx, gib)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		if !strings.Contains(err.Error(), "its status is creating") {
			t.Errorf("the error does not say how the volume looked: %v", err)
		}
		v, err := s.Create(cloudtest.Within(t, 60), gib)
		if err != nil || v.Status != volume.Available || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

func TestCreateFindsTheVolumeAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		c.Hook["CreateVolume"] = func() {
			c.Put(cloudtest.OwnVolume(1, volume.Available))
			c.Fail["CreateVolume"] = cloudtest.ErrLost
		}
		_, err := s.Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		v, err := s.Create(cloudtest.Within(t, 60), gib)
		if err != nil || v.ID != cloudtest.VolumeID(1) || c.Count("CreateVolume") != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

// Once it is certain that nothing was created, only the kind of the error decides whether it is final.
func TestCreateThatWasRefusedOrNotSentIsFinal(t *testing.T) {
	for kind := range volume.KindCount {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t)
				c.Fail["CreateVolume"] = volume.Errorf(kind, "no")
				_, err := service(c).Create(cloudtest.Within(t, 60), gib)
				if kind == volume.NotInZone {
					kind = volume.InvalidArgument // no zone was asked for: there is none to change
				}
				cloudtest.WantKind(t, err, kind, false)
			})
		})
	}
}

func TestCreateIsNeverFinalAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Fail["CreateVolume"] = volume.Errorf(volume.InvalidArgument, "a proxy's answer").AfterWrite()
		_, err := service(c).Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.InvalidArgument, true)
	})
}

func TestCreateIsNeverFinalWhileTheNameCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind := range volume.KindCount {
			c := cloudtest.New(t)
			c.Fail["VolumesNamed"] = volume.Errorf(kind, "no")
			_, err := service(c).Create(t.Context(), gib)
			cloudtest.WantKind(t, err, kind, kind != volume.NotOwned) // with NotOwned it is read, and others have every object
			if c.Count("CreateVolume") != 0 {
				t.Errorf("%s: a volume was asked for", kind)
			}
		}
	})
}

func TestCreateDeletesAFailedVolumeAndReturnsTheReason(t *testing.T) {
	const driverFailed = "create volume from backend storage:Driver failed to create the volume."
	for reason, test := range map[string]struct {
		failure func(c *cloudtest.Cloud)
		kind    volume.Kind
		cause   cause.ID
	}{
		"": {func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
			c.Fail["Failure"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.Failed, cause.CreateError},
		driverFailed: {func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
			c.Reason = driverFailed
		}, volume.Failed, cause.CreateError},
		noRoom: {func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true})
		}, volume.Exhausted, cause.CreateNoBackend},
		driverFailed + "; " + noRoom: {func(c *cloudtest.Cloud) { // the backend failed, and no other is left to try
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
		}, volume.Failed, cause.CreateError},
		"the backend is down; " + noRoom: {func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
			c.Reason = "the backend is down; " + noRoom
		}, volume.Exhausted, cause.CreateError},
	} {
		t.Run(test.kind.String()+" "+reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, kind := cloudtest.New(t), test.kind
				test.failure(c)
				_, err := service(c).Create(cloudtest.Within(t, 60), gib)
				cloudtest.WantKind(t, err, kind, false)
				if got := volume.CauseOf(err); got != test.cause {
					t.Errorf("cause %s, want %s: %v", got, test.cause, err)
				}
				if !strings.Contains(err.Error(), strings.TrimSuffix(reason, ".")) {
					t.Errorf("the reason %q is not in %v", reason, err)
				}
				if len(c.Volumes()) != 0 {
					t.Errorf("left over: %v", c.Volumes())
				}
			})
		})
	}
}

func TestCreateIsRetryableWhereTheFailedVolumeCannotBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
		c.Fail["DeleteVolume"] = volume.Errorf(volume.Conflict, "it has snapshots")
		_, err := service(c).Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.Conflict, true)
	})
}

func TestCreateNeverDeletesAFailedVolumeThatItDoesNotOwn(t *testing.T) {
	otherName, otherCluster, attached := cloudtest.OwnVolume(1, "error"), cloudtest.OwnVolume(1, "error"), cloudtest.OwnVolume(1, "error")
	otherName.Metadata[contract.MetadataRequest] = cloudtest.TestOwner.Token("pvc-2")
	otherCluster.Metadata[contract.MetadataCluster] = "another"
	attached.Attachments = []volume.Attachment{{Server: cloudtest.ServerA}}
	for name, v := range map[string]volume.Volume{"no token": cloudtest.ForeignVolume(1, "error"), "another request's token": otherName, "another cluster": otherCluster, "attached": attached} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, v)
				_, err := service(c).Create(t.Context(), gib)
				cloudtest.WantKind(t, err, volume.Failed, true)
				if c.Count("DeleteVolume") != 0 {
					t.Errorf("it was deleted: %v", c.Calls)
				}
			})
		})
	}
}

// A create may take hours, and at its end the volume differs all the same.
func TestCreateDoesNotWaitForAVolumeThatDiffers(t *testing.T) {
	for name, change := range map[string]func(*CreateSpec){
		"larger":     func(spec *CreateSpec) { spec.Size.Required = volume.GiB(2) },
		"of a clone": func(spec *CreateSpec) { spec.Source = cloudtest.VolumeID(9) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec, began := gib, time.Now()
				change(&spec)
				_, err := service(cloudtest.New(t, cloudtest.OwnVolume(1, volume.Creating))).Create(cloudtest.Within(t, 60), spec)
				if cloudtest.WantKind(t, err, volume.Incompatible, false); time.Since(began) > time.Second {
					t.Errorf("it took %v", time.Since(began))
				}
			})
		})
	}
}

func TestCreateWithAVolumeThatDiffersIsIncompatible(t *testing.T) {
	for name, change := range map[string]func(v *volume.Volume, spec *CreateSpec){
		"smaller":             func(_ *volume.Volume, spec *CreateSpec) { spec.Size.Required = volume.GiB(2) },
		"above the limit":     func(v *volume.Volume, spec *CreateSpec) { v.Size = volume.GiB(3); spec.Size.Limit = volume.GiB(2) },
		"another type":        func(v *volume.Volume, spec *CreateSpec) { v.Type = "standard"; spec.Type = "fast" },
		"cloned":              func(v *volume.Volume, _ *CreateSpec) { v.SourceID = cloudtest.VolumeID(9) },
		"not a clone":         func(_ *volume.Volume, spec *CreateSpec) { spec.Source = cloudtest.VolumeID(9) },
		"from a snapshot":     func(v *volume.Volume, _ *CreateSpec) { v.SnapshotID = "s" },
		"for one server only": func(_ *volume.Volume, spec *CreateSpec) { spec.Multiattach = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, spec := cloudtest.OwnVolume(1, volume.Available), gib
				change(&v, &spec)
				c := cloudtest.New(t, v)
				_, err := service(c).Create(t.Context(), spec)
				cloudtest.WantKind(t, err, volume.Incompatible, false)
				if c.Count("DeleteVolume") != 0 {
					t.Error("it was deleted")
				}
			})
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
			synctest.Test(t, func(t *testing.T) {
				v, spec := cloudtest.OwnVolume(1, volume.Available), gib
				change(&v, &spec)
				got, err := service(cloudtest.New(t, v)).Create(t.Context(), spec)
				if err != nil || got.ID != v.ID {
					t.Errorf("want %s, got %v, %v", v.ID, got, err)
				}
			})
		})
	}
}

func TestCreateDeletesItsVolumeThatDiffersFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Hook["CreateVolume"] = func() {
			time.AfterFunc(500*time.Millisecond, func() { c.Change(c.Volumes()[0], func(v *volume.Volume) { v.Type = "multiattach" }) })
		}
		spec := gib
		spec.Type = "fast"
		_, err := service(c).Create(cloudtest.Within(t, 60), spec)
		cloudtest.WantKind(t, err, volume.Failed, false)
		if len(c.Volumes()) != 0 || !strings.Contains(err.Error(), `"multiattach"`) {
			t.Errorf("%v; left: %v", err, c.Volumes())
		}
		c.Fail["DeleteVolume"] = volume.Errorf(volume.Unavailable, "no answer").AfterWrite()
		_, err = service(c).Create(cloudtest.Within(t, 60), spec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
	})
}

func TestCreateAcceptsALargerVolumeAnyTypeIDAndAnotherZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := cloudtest.OwnVolume(1, volume.Available)
		v.Size, v.Type, v.Zone = volume.GiB(5), "fast", "nova"
		spec := gib
		spec.Type, spec.Zones = "f61b0000-0000-4000-8000-000000000000", []string{"az1"}
		got, err := service(cloudtest.New(t, v)).Create(t.Context(), spec)
		if err != nil || got.Zone != "nova" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestCreateReturnsTheOldestAndDeletesOnlyItsOwnUnusedDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		aged := func(v volume.Volume, seconds int) volume.Volume {
			return cloudtest.CreatedAt(v, start.Add(time.Duration(seconds)*time.Second))
		}
		attached := aged(cloudtest.OwnVolume(5, volume.InUse), 9)
		attached.Attachments = []volume.Attachment{{Server: cloudtest.ServerA}}
		c := cloudtest.New(t, aged(cloudtest.OwnVolume(3, volume.Available), 5), aged(cloudtest.ForeignVolume(4, volume.Available), 0), aged(cloudtest.OwnVolume(1, volume.Available), 0), aged(cloudtest.ForeignVolume(2, volume.Available), 7), attached)
		v, err := service(c).Create(cloudtest.Within(t, 60), gib)
		if err != nil || v.ID != cloudtest.VolumeID(1) {
			t.Fatalf("want the oldest, then lowest id, %s; got %v, %v", cloudtest.VolumeID(1), v, err)
		}
		if c.Count("DeleteVolume") != 1 || slices.Contains(c.Volumes(), cloudtest.VolumeID(3)) {
			t.Errorf("want only %s removed: %v", cloudtest.VolumeID(3), c.Calls)
		}
	})
}

func TestCreateKeepsDuplicatesOfTheSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available))
		v, err := service(c).Create(t.Context(), gib)
		if err != nil || v.ID != cloudtest.VolumeID(1) || c.Count("DeleteVolume") != 0 {
			t.Errorf("got %v, %v, %v", v, err, c.Calls)
		}
	})
}

func TestCreateByTwoReplicasEndsWithOneVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		older := cloudtest.OwnVolume(1, volume.Available)
		older.CreatedAt = time.Now().Add(-time.Second)
		c.Hook["CreateVolume"] = func() { c.Put(older) }
		v, err := service(c).Create(cloudtest.Within(t, 60), gib)
		if err != nil || v.ID != older.ID || len(c.Volumes()) != 1 {
			t.Errorf("got %v, %v; left %v", v, err, c.Volumes())
		}
	})
}

func TestCreateWaitsForADeletionOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Deleting))
		time.AfterFunc(time.Second, func() { c.Remove(cloudtest.VolumeID(1)) })
		v, err := service(c).Create(cloudtest.Within(t, 60), gib)
		if err != nil || v.ID == cloudtest.VolumeID(1) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestCreateIsRetryableWhereTheVolumeDisappears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		time.AfterFunc(500*time.Millisecond, func() { c.Remove(c.Volumes()[0]) })
		_, err := service(c).Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.Busy, true)
	})
}

func TestCreateForSeveralServersNeedsAMultiattachType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		spec := gib
		spec.Multiattach = true
		_, err := service(c).Create(cloudtest.Within(t, 60), spec)
		cloudtest.WantKind(t, err, volume.InvalidArgument, false)
		if len(c.Volumes()) != 0 {
			t.Errorf("left over: %v", c.Volumes())
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
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t)
				_, err := service(c).Create(t.Context(), test.spec)
				cloudtest.WantKind(t, err, test.kind, false)
				if len(c.Calls) != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}

func TestCreateFromAVolume(t *testing.T) {
	source := volume.Volume{ID: cloudtest.VolumeID(1), Name: "source", Status: volume.InUse, Size: volume.GiB(2), Zone: "az 2"}
	for name, test := range map[string]struct {
		spec CreateSpec
		zone string
		kind volume.Kind
	}{
		"without a zone goes to its source's":  {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}}, zone: "az 2"},
		"with a label of that zone too":        {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}, Zones: []string{"az1", "az-2"}}, zone: "az 2"},
		"into another zone":                    {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(2)}, Zones: []string{"az1"}}, kind: volume.NotInZone},
		"that is smaller":                      {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}}, kind: volume.OutOfRange},
		"of a volume that is not there":        {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}, Source: cloudtest.VolumeID(7)}, kind: volume.NotFound},
		"of a volume that cannot be: no UUID":  {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(1)}, Source: "../types"}, kind: volume.NotFound},
		"may be larger than what it came from": {spec: CreateSpec{Size: volume.Range{Required: volume.GiB(9)}}, zone: "az 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.NewWith(t, zoned("az1", "az 2"), source)
				spec := test.spec
				spec.Name = "clone"
				if spec.Source == "" {
					spec.Source = source.ID
				}
				v, err := service(c).Create(cloudtest.Within(t, 60), spec)
				if test.zone == "" {
					cloudtest.WantKind(t, err, test.kind, false)
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
		c := cloudtest.New(t)
		s := service(c)
		first := make(chan error, 1)
		go func() {
			_, err := s.Create(cloudtest.Within(t, 60), gib)
			first <- err
		}()
		synctest.Wait()
		_, err := s.Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.Busy, true)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// testCreateIn creates a volume whose name a volume of this driver has, in that status.
func testCreateIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, status))
		v, err := service(c).Create(cloudtest.Within(t, 60), gib)
		switch status.Meaning().Create {
		case volume.Proceed:
			if err != nil || v.ID != cloudtest.VolumeID(1) {
				t.Errorf("got %v, %v", v, err)
			}
		case volume.Refuse:
			if status != "error_deleting" {
				cloudtest.WantKind(t, err, volume.Failed, false)
			}
			if c.Count("DeleteVolume") != 1 {
				t.Error("it was not removed")
			}
		default:
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
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
				c := cloudtest.New(t)
				spec := gib
				spec.Multiattach = test.multiattach
				earlier := cloudtest.OwnVolume(1, volume.Available)
				earlier.Metadata = service(c).createMetadata(spec)
				c.Put(earlier)
				spec.Multiattach = true
				_, err := service(c).Create(cloudtest.Within(t, 60), spec)
				cloudtest.WantKind(t, err, test.kind, false)
				if len(c.Volumes()) != test.left {
					t.Errorf("want %d left, got %v", test.left, c.Volumes())
				}
			})
		})
	}
}

func TestCreateInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testCreateIn(t, status) })
	}
}
