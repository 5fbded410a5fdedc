package attach

import (
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
	"testing"
	"testing/synctest"
	"time"
)

// The retry of a lost attach succeeds by itself; the lost one is carried out after the detach has begun.
func TestADetachOutlastsALostAttachThatWasSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		s := attaching(c)
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
			t.Errorf("the detach was done, and then the volume is %s at %v", v.Status, v.Attachments)
		}
	})
}

// A lost detach that is carried out after the next attach would take the disk away under a mounted file system.
func TestAnAttachWaitsUntilALostDetachFromTheSameServerIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		s := attaching(c)
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
		time.Sleep(novaGoesOn)
		if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Errorf("once it is over: %v", err)
		}
	})
}

// The volume has left the server and the detach was sent once: nothing else can come of it.
func TestAnAttachDoesNotWaitForALostDetachThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		s := attaching(c)
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
