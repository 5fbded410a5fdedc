package attach

import (
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// The detach has read the volume, and the attach uses that reading. Somebody else changed the volume in between, so Nova refuses the attach.
// The driver reads the volume and does what it would have done without the reading.
func TestAnAttachAfterADetachReadsAVolumeThatHasChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(c *cloudtest.Cloud)
		kind     volume.Kind // Unknown means that the attach succeeds
		requests int         // to attach
	}{
		"nothing": {change: func(*cloudtest.Cloud) {}, requests: 1},
		// Nova takes a multiattach volume only at microversion 2.60: the first request is one for the volume as it was.
		"another type": {change: func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Multiattach = true })
		}, requests: 2},
		"attached here": {change: func(c *cloudtest.Cloud) { c.Put(cloudtest.AttachedVolume(cloudtest.ServerA)) }, requests: 1},
		"attached elsewhere": {
			change: func(c *cloudtest.Cloud) { c.Put(cloudtest.AttachedVolume(cloudtest.ServerB)) }, kind: volume.Conflict, requests: 1,
		},
		"in an error": {change: func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.ErrorStatus })
		}, kind: volume.Conflict, requests: 1},
		"gone": {change: func(c *cloudtest.Cloud) { c.Remove(cloudtest.VolumeID(1)) }, kind: volume.NotFound, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
				s := newService(c)
				if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
					t.Fatal(err)
				}
				test.change(c)
				reads := c.Count("Volume")
				v, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
				if test.kind != volume.Unknown {
					cloudtest.WantKind(t, err, test.kind, false)
				} else if err != nil || !v.AttachedTo(cloudtest.ServerA) {
					t.Errorf("got %v, %v", v, err)
				}
				if got := c.Count("Attach"); got != test.requests {
					t.Errorf("want %d requests to attach, got %d; %v", test.requests, got, err)
				}
				if name == "nothing" && c.Count("Volume") != reads {
					t.Errorf("the attach read a volume that the detach has just read: %v", c.Calls)
				}
			})
		})
	}
}

// Nova refuses the request for a reason that no reading explains. The driver sends it once more after a cached reading, and no third time.
func TestARefusalAfterACachedReadingIsRepeatedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		s := newService(c)
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Sim.SetServerStatus(string(cloudtest.ServerA), "ACTIVE", "migrating")
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if cloudtest.WantKind(t, err, volume.Busy, false); c.Count("Attach") != 2 {
			t.Errorf("after %v", c.Calls)
		}
	})
}

// A detach begins with a cached reading, and Nova answers that the volume is not attached. The driver reads the volume.
func TestADetachAfterAnAttachReadsAVolumeThatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Sim.Unplug(string(cloudtest.VolumeID(1)), string(cloudtest.ServerA))
		reads := c.Count("Volume")
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Volume") == reads || c.Count("Detach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// The attach leaves a reading of the volume in use, which is for a detach. A repeated attach reads the volume: it answers nothing from the
// cache.
func TestARepeatedAttachIsNotAnsweredFromTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		for n := range 2 {
			if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Attach") != 1 || c.Count("Volume") != n+1 {
				t.Errorf("call %d: %v after %v", n+1, err, c.Calls)
			}
		}
	})
}
