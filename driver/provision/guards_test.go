package provision

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// A volume that has what was asked for, but in an error status, is no success.
func TestTheEffectInAnErrorStatusIsNoSuccess(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		change func(v *volume.Volume)
		call   func(ctx context.Context, s *Service) error
	}{
		"expand": {"Extend", func(v *volume.Volume) { v.Status, v.Size = "error_extending", volume.GiB(9) }, func(ctx context.Context, s *Service) error {
			_, err := s.Expand(ctx, cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(9)})
			return err
		}},
		"retype": {"Retype", func(v *volume.Volume) { v.Status, v.Type = volume.ErrorStatus, "fast" }, func(ctx context.Context, s *Service) error {
			return s.Modify(ctx, cloudtest.VolumeID(1), Change{Type: "fast", Migrate: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
				c.Sim.SetLatency(openstacksim.ExtendVolume, time.Hour)
				c.Sim.SetLatency(openstacksim.RetypeVolume, time.Hour)
				c.Hook[test.method] = func() { time.AfterFunc(time.Second, func() { c.Change(cloudtest.VolumeID(1), test.change) }) }
				cloudtest.WantKind(t, test.call(cloudtest.Within(t, 60), service(c)), volume.Failed, true)
			})
		})
	}
}

func TestAVolumeOfExactlyTheLimitIsLargeEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		if v, err := service(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(1), Limit: volume.GiB(1)}); err != nil || v.Size != volume.GiB(1) {
			t.Error(v, err)
		}
	})
}

// The message says whether another zone may have room. If nobody can read it, no answer is final.
func TestAFailureWhoseReasonCannotBeReadIsNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		c.Fail["Failure"] = volume.Errorf(volume.Unavailable, "HTTP 503")
		_, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}})
		cloudtest.WantKind(t, err, volume.Unavailable, true)
	})
}

// Somebody deletes the volume while Cinder creates it. That is no failure of Cinder, and the driver does not delete it again.
func TestAVolumeThatSomebodyDeletesIsNotDeletedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Sim.SetLatency(openstacksim.CreateVolume, time.Hour)
		c.Hook["CreateVolume"] = func() {
			time.AfterFunc(time.Second, func() {
				for _, id := range c.Volumes() {
					c.Change(id, func(v *volume.Volume) { v.Status = volume.Deleting })
				}
			})
		}
		_, err := service(c).Create(cloudtest.Within(t, 60), CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}})
		if cloudtest.WantKind(t, err, volume.Busy, true); c.Count("DeleteVolume") != 0 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// A caller that leaves during the read of the zones says nothing about Cinder: the next caller reads again.
func TestACallerThatLeavesDecidesNothingAboutTheZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zones := &slowZones{takes: time.Minute}
		s := New(zones, nil, Options{})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := s.volumeZones(ctx); err == nil {
			t.Fatal("it did not leave")
		}
		zones.takes = 0
		if names, err := s.volumeZones(t.Context()); err != nil || len(names) != 1 {
			t.Errorf("%v, %v", names, err)
		}
	})
}

// The driver asks once: other callers wait behind it. Zones that it has read once stay known.
func TestZonesThatWereReadOnceStayKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zones := &slowZones{}
		s := New(zones, nil, Options{})
		if _, err := s.volumeZones(t.Context()); err != nil || !zones.once {
			t.Fatalf("%v, one attempt: %v", err, zones.once)
		}
		time.Sleep(2 * zoneCacheAge)
		zones.err = volume.Errorf(volume.Unavailable, "HTTP 503")
		if names, unread := s.volumeZones(t.Context()); len(names) != 1 || unread != nil {
			t.Errorf("%v, unread: %v", names, unread)
		}
	})
}

type slowZones struct {
	volume.Cloud
	takes time.Duration
	err   error
	once  bool
}

func (c *slowZones) VolumeZones(ctx context.Context) ([]string, error) {
	c.once = volume.OneAttempt(ctx)
	select {
	case <-time.After(c.takes):
		return []string{"az1"}, c.err
	case <-ctx.Done():
		return nil, volume.Errorf(volume.Unimplemented, "the connection broke") // whatever the reason looks like
	}
}

// An ID comes before a name, also if another volume has that ID as its name.
func TestAHintThatIsAnIDIsNotAmbiguous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byID, byName := cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available)
		byName.Name = string(byID.ID)
		for i, v := range []*volume.Volume{&byID, &byName} {
			v.Metadata[contract.MetadataPVCNamespace] = "shop"
			v.CreatedAt = time.Now().Add(-time.Duration(1+i) * time.Hour) // the one with the name is listed last
		}
		c := cloudtest.New(t, byID, byName)
		found, err := service(c).namedInNamespace(t.Context(), "shop", []string{string(byID.ID)})
		if ids := found[string(byID.ID)]; err != nil || len(ids) != 1 || ids[0] != byID.ID {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// A cloud chooses how many volumes have the name of a hint. Two are as ambiguous as all of them.
func TestTwoVolumesOfTheNameOfAHintAreKept(t *testing.T) {
	v := volume.Volume{ID: cloudtest.VolumeID(1), Name: "db", Metadata: map[string]string{contract.MetadataPVCNamespace: "shop"}}
	found, err := New(oneVolume{shown: v, times: 100}, nil, Options{}).namedInNamespace(t.Context(), "shop", []string{"db"})
	if n := len(found["db"]); n != 2 || err != nil {
		t.Errorf("want 2, got %d, %v", n, err)
	}
}

func TestATypeIsFoundByItsIDInCapitals(t *testing.T) {
	types := []volume.Type{{ID: "aaaaaaaa-0000-4000-8000-00000000000a", Name: "fast"}}
	if got, err := findType(types, strings.ToUpper(types[0].ID)); err != nil || got.Name != "fast" {
		t.Error(got, err)
	}
}

// Without Nova nobody knows whether a server exists, and the health of a volume does not depend on it.
func TestHealthNeedsNoNova(t *testing.T) {
	for _, kind := range []volume.Kind{volume.Unimplemented, volume.PermissionDenied} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
			c.Fail["Server"] = volume.Errorf(kind, "no")
			if h, err := service(c).Health(t.Context(), cloudtest.VolumeID(1)); err != nil || len(h.Issues) != 0 {
				t.Errorf("%v: %v, %v", kind, h, err)
			}
		})
	}
}

// The times of restores are forgotten after an hour.
func TestTheTimesOfRestoresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns restoreTurns
		turns.allow(cloudtest.VolumeID(1))
		time.Sleep(2 * time.Hour)
		if turns.allow(cloudtest.VolumeID(2)); len(turns.begin) != 1 {
			t.Errorf("%d times are kept", len(turns.begin))
		}
	})
}

// Cinder has accepted the restore, and reads still show the empty volume, which is available. It is no result.
func TestAnEmptyVolumeIsNoRestoredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		c.Sim.SetLatency(openstacksim.RestoreBackup, 5*time.Second)
		c.Hook["RestoreBackup"] = func() { c.Sim.SetLag(2 * time.Second) }
		v, err := service(c).Create(cloudtest.Within(t, 60), fromCeph)
		c.Sim.SetLag(0)
		wantRestored(t, c, v, err, 1)
	})
}

// Another restore uses the backup just now. The empty volume stays, and a retry goes on with it.
func TestABackupThatIsJustUsedKeepsTheEmptyVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		c.Fail["RestoreBackup"] = volume.Errorf(volume.Busy, "must be available")
		c.Hook["RestoreBackup"] = func() { c.ChangeSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.Status = "restoring" }) }
		_, err := service(c).Create(cloudtest.Within(t, 60), fromCeph)
		if cloudtest.WantKind(t, err, volume.Busy, true); len(c.Volumes()) != 1 {
			t.Errorf("left %v", c.Volumes())
		}
	})
}

// A caller that left during the read of the quotas says nothing about Cinder, so those that wait behind it read by themselves.
func TestACallerThatLeavesDecidesNothingAboutTheQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas := new(slowQuotas)
		quotas.takes.Store(int64(time.Minute))
		cache := newQuotaCache(nil)
		go func() {
			ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
			defer leave()
			_, _ = cache.read(ctx, quotas)
		}()
		time.Sleep(time.Second)
		time.AfterFunc(5*time.Second, func() { quotas.takes.Store(0) })
		if _, err := cache.read(t.Context(), quotas); err != nil {
			t.Error(err)
		}
	})
}

type slowQuotas struct {
	volume.Cloud
	takes atomic.Int64 // nanoseconds
}

func (c *slowQuotas) Quotas(ctx context.Context) (map[string]volume.Quota, error) {
	select {
	case <-time.After(time.Duration(c.takes.Load())):
		return map[string]volume.Quota{}, nil
	case <-ctx.Done():
		return nil, volume.Interrupted(ctx, "quotas")
	}
}
func (*slowQuotas) Types(context.Context) ([]volume.Type, error)     { return nil, nil }
func (*slowQuotas) DefaultType(context.Context) (volume.Type, error) { return volume.Type{}, nil }

// A quota that is as old as the cache allows is read again.
func TestAQuotaIsReadAgainAtTheAgeOfTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas, reads := &slowQuotas{}, 0
		cache := newQuotaCache(func(map[string]volume.Quota) { reads++ })
		for range 2 {
			if _, err := cache.read(t.Context(), quotas); err != nil {
				t.Fatal(err)
			}
			time.Sleep(quotaCacheAge)
		}
		if reads != 2 {
			t.Errorf("read %d times", reads)
		}
	})
}

func TestASizeOfATypeIsReadUpToTheLargestNumberOfBytes(t *testing.T) {
	most := int64(Unlimited >> 30)
	for text, want := range map[string]volume.Size{
		"1": volume.GiB(1), fmt.Sprint(most): volume.Size(most) << 30, fmt.Sprint(most + 1): 0, "0": 0, "-1": 0, "many": 0,
	} {
		if got := parseGiB(text); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}
