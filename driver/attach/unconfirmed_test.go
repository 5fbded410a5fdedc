package attach

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// The retry of an attach succeeds. Nova completes the first attach, whose answer was lost, after the detach has begun.
func TestDetachWaitsForAnUnconfirmedAttachThatWasSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		s := newService(c)
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		c.Breaks("Attach", nil)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = c.Attach(t.Context(), cloudtest.ServerA, cloudtest.OwnVolume(1, volume.Available)) })
		time.Sleep(20 * time.Second)
		if err := s.Detach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
			t.Errorf("after the detach the volume is %s at %v", v.Status, v.Attachments)
		}
	})
}

// A detach that Nova completes after the next attach would remove the disk under a mounted file system.
func TestAttachWaitsForAnUnconfirmedDetachFromTheSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Fail["Detach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		cloudtest.WantKind(t, s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA), volume.Unavailable, true)
		c.Breaks("Detach", nil)
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Busy, false)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerB); err != nil {
			t.Errorf("to another server: %v", err)
		}
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerB); err != nil {
			t.Fatal(err)
		}
		time.Sleep(unconfirmedFor)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Errorf("once it is over: %v", err)
		}
	})
}

// The volume is detached and the driver sent one detach: it has completed.
func TestAttachDoesNotWaitForADetachThatHasCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Hook["Detach"] = func() {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
			c.List(cloudtest.VolumeID(1))
		}
		c.Fail["Detach"] = volume.Errorf(volume.Unavailable, "connection reset").AfterWrite()
		cloudtest.WantKind(t, s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA), volume.Unavailable, true)
		c.Breaks("Detach", nil)
		c.Hook["Detach"] = nil
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Error(err)
		}
	})
}
