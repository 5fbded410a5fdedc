package provision

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func growing(c *cloudtest.Cloud) *Service { return New(c, c, Options{}) }

func TestExpandReturnsOnceCinderShowsTheSize(t *testing.T) {
	for _, status := range []volume.Status{volume.Available, volume.InUse} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: status, Size: volume.GiB(1)})
			v, err := growing(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2) + 1})
			if err != nil || v.Size != volume.GiB(3) || v.Status != status {
				t.Errorf("got %v, %v", v, err)
			}
			if want := fmt.Sprint("Extend ", cloudtest.VolumeID(1), status == volume.InUse); c.Count("Extend") != 1 || c.Count(want) != 1 {
				t.Errorf("want %s, got %v", want, c.Calls)
			}
		})
	}
}

func TestExpandOfALargeEnoughVolumeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: "error_extending", Size: volume.GiB(5)})
		v, err := growing(c).Expand(t.Context(), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		if err != nil || v.Size != volume.GiB(5) || c.Count("Extend") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

func TestExpandWaitsForAnExpansionInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: "extending", Size: volume.GiB(1)})
		c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Size = volume.Available, volume.GiB(2) })
		v, err := growing(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		if err != nil || v.Size != volume.GiB(2) || c.Count("Extend") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

// While a call waits it holds no lock. It goes on with the lock alone: another call may have sent a request whose effect nobody sees yet.
func TestACallThatHasWaitedIsBusyWhileAnotherHasTheLock(t *testing.T) {
	id := cloudtest.VolumeID(1)
	for name, call := range map[string]func(context.Context, *Service) error{
		"expand": func(ctx context.Context, s *Service) error {
			_, err := s.Expand(ctx, id, volume.Range{Required: volume.GiB(2)})
			return err
		},
		"delete": func(ctx context.Context, s *Service) error { return s.Delete(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, volume.Volume{ID: id, Status: "retyping", Size: volume.GiB(1)})
				c.Later(id, func(v *volume.Volume) { v.Status = volume.Available })
				s := growing(c)
				other := s.locks.Work(inflight.VolumeKey(id), "modify")
				time.AfterFunc(time.Millisecond, func() { _, _ = other.Lock() })
				cloudtest.WantKind(t, call(cloudtest.Within(t, 60), s), volume.Busy, false)
				if c.Count("Extend")+c.CountPrefix("Delete") != 0 {
					t.Errorf("sent %v", c.Calls)
				}
			})
		})
	}
}

func TestExpandThatFailsReturnsTheReason(t *testing.T) {
	for _, outcome := range []volume.Status{"error_extending", volume.Available} { // as it was, or Cinder just does not do it
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available, Size: volume.GiB(1)})
			c.Reason = "the pool is full"
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.ExtendVolume})
			if outcome == volume.Available {
				c.Sim.SetLatency(openstacksim.ExtendVolume, time.Hour)
				c.Hook["Extend"] = func() { c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = outcome }) }
			}
			_, err := growing(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
			cloudtest.WantKind(t, err, volume.Failed, true)
			if !strings.Contains(err.Error(), "the pool is full") {
				t.Error(err)
			}
		})
	}
}

// A volume in an error status has not been expanded, whatever size it shows.
func TestExpandIsNotDoneInAnErrorStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available, Size: volume.GiB(1)})
		c.Sim.SetLatency(openstacksim.ExtendVolume, time.Hour)
		c.Hook["Extend"] = func() {
			c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Size = "error_extending", volume.GiB(2) })
		}
		_, err := growing(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		cloudtest.WantKind(t, err, volume.Failed, true)
	})
}

func TestExpandOfAVolumeAtItsLimitIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available, Size: volume.GiB(2)})
		if v, err := growing(c).Expand(t.Context(), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2), Limit: volume.GiB(2)}); err != nil || v.Size != volume.GiB(2) {
			t.Errorf("%v, %v", v, err)
		}
	})
}

func TestExpandRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		id   volume.ID
		size volume.Range
		kind volume.Kind
	}{
		"no volume":        {cloudtest.VolumeID(9), volume.Range{Required: volume.GiB(2)}, volume.NotFound},
		"no volume's id":   {"vol", volume.Range{Required: volume.GiB(2)}, volume.NotFound},
		"above the limit":  {cloudtest.VolumeID(1), volume.Range{Required: 1, Limit: volume.GiB(3)}, volume.OutOfRange},
		"no GiB fits":      {cloudtest.VolumeID(1), volume.Range{Required: 1, Limit: 2}, volume.OutOfRange},
		"a negative range": {cloudtest.VolumeID(1), volume.Range{Required: -1}, volume.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := growing(cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available, Size: volume.GiB(5)})).Expand(t.Context(), test.id, test.size)
				cloudtest.WantKind(t, err, test.kind, false)
			})
		})
	}
}

func testExpandIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: status, Size: volume.GiB(1)})
		_, err := growing(c).Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		sent := c.Count("Extend") == 1
		wantByExtendStatus(t, status, err, sent)
	})
}

func TestExpandInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testExpandIn(t, status) })
	}
}
