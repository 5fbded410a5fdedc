package attach

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

// The retry of an attach succeeds. Nova completes the first attach, whose answer was lost, after the detach has begun.
func TestDetachWaitsForAnUnconfirmedAttachThatWasSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		s := newService(c)
		_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.Unavailable, true)
		c.Breaks("Attach", nil)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = c.Attach(t.Context(), volumetest.ServerA, volumetest.OwnVolume(1, volume.Available)) })
		time.Sleep(20 * time.Second)
		if err := s.Detach(volumetest.Within(t, 180), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
			t.Errorf("after the detach the volume is %s at %v", v.Status, v.Attachments)
		}
	})
}

// A detach that Nova completes after the next attach would remove the disk under a mounted file system.
func TestAttachWaitsForAnUnconfirmedDetachFromTheSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Fail["Detach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		volumetest.WantKind(t, s.Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA), volume.Unavailable, true)
		c.Breaks("Detach", nil)
		if err := s.Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.Busy, false)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerB); err != nil {
			t.Errorf("to another server: %v", err)
		}
		if err := s.Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerB); err != nil {
			t.Fatal(err)
		}
		time.Sleep(unconfirmedFor)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Errorf("once it is over: %v", err)
		}
	})
}

// The volume is detached and the driver sent one detach: it has completed.
func TestAttachDoesNotWaitForADetachThatHasCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Hook["Detach"] = func() {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
			delete(c.Servers, volumetest.ServerA)
			c.Servers[volumetest.ServerA] = nil
		}
		c.Fail["Detach"] = volume.Errorf(volume.Unavailable, "connection reset").AfterWrite()
		volumetest.WantKind(t, s.Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA), volume.Unavailable, true)
		c.Breaks("Detach", nil)
		c.Hook["Detach"] = nil
		if err := s.Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Error(err)
		}
	})
}
