package observe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

// withNewVolume returns a cloud, its services, and a volume that Create has just created there.
func withNewVolume(t *testing.T) (*volumetest.Cloud, services, volume.ID) {
	t.Helper()
	c := volumetest.NewCloud()
	recent := &observe.Recent{}
	s := services{provision.New(c, c, provision.Options{Owner: volumetest.TestOwner, Recent: recent}), attach.New(c, c, attach.Options{Recent: recent}), recent}
	v, err := s.volumes.Create(volumetest.Within(t, 60), provision.CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}})
	if err != nil {
		t.Fatal(err)
	}
	c.Calls = nil
	return c, s, v.ID
}

// services share the cache.
type services struct {
	volumes     *provision.Service
	attachments *attach.Service
	recent      *observe.Recent
}

func TestARequestSoonAfterAnotherSavesTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		if _, err := s.attachments.Attach(volumetest.Within(t, 60), id, volumetest.ServerA); err != nil || c.Count("Volume") != 0 {
			t.Errorf("attach: %v after %v", err, c.Calls)
		}
		if err := s.attachments.Detach(volumetest.Within(t, 60), id, volumetest.ServerA); err != nil || c.Count("Volume") != 0 {
			t.Errorf("detach: %v after %v", err, c.Calls)
		}
		if err := s.volumes.Delete(volumetest.Within(t, 60), id); err != nil || c.Count("Volume") != 0 || len(c.VolumesByID) != 0 {
			t.Errorf("delete: %v after %v", err, c.Calls)
		}
	})
}

func TestAReadingServesOneCallWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 503")
		for range 2 {
			_, err := s.attachments.Attach(volumetest.Within(t, 60), id, volumetest.ServerA)
			volumetest.WantKind(t, err, volume.Unavailable, false)
		}
		if c.Count("Volume") != 1 {
			t.Errorf("the second attach did not read the volume: %v", c.Calls)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		time.Sleep(5 * time.Second)
		if err := s.volumes.Delete(volumetest.Within(t, 60), id); err != nil || c.Count("Volume") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// An attach has the same outcome with an outdated reading as without one.
func TestAnAttachWithAnOutdatedReadingReadsTheVolume(t *testing.T) {
	for name, test := range map[string]struct {
		now  func(v *volume.Volume)
		want volume.Kind // Unknown means that the attach succeeds
	}{
		"attached elsewhere": {func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerB}}
		}, volume.Conflict},
		"attached here": {func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerA}}
		}, volume.Unknown},
		"retyped to multiattach": {func(v *volume.Volume) { v.Multiattach = true }, volume.Unknown},
		"in error":               {func(v *volume.Volume) { v.Status = "error" }, volume.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, id := withNewVolume(t)
				c.Change(id, test.now)
				if c.VolumesByID[id].AttachedTo(volumetest.ServerA) {
					c.Servers[volumetest.ServerA] = []volume.ID{id}
				}
				c.Hook["Attach"] = func() { // Nova refuses the first request and accepts the second
					if delete(c.Fail, "Attach"); c.Count("Attach") == 1 {
						c.Fail["Attach"] = volume.Errorf(volume.InvalidArgument, "no")
					}
				}
				v, err := s.attachments.Attach(volumetest.Within(t, 60), id, volumetest.ServerA)
				if test.want == volume.Unknown && (err != nil || (v.Status != volume.InUse || !v.AttachedTo(volumetest.ServerA))) {
					t.Errorf("got %v, %v after %v", v, err, c.Calls)
				}
				if test.want != volume.Unknown {
					volumetest.WantKind(t, err, test.want, false)
				}
			})
		})
	}
}

func TestADeleteWithAnOutdatedReadingReadsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		c.Change(id, func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerB}}
		})
		c.Fail["DeleteVolume"] = volume.Errorf(volume.InvalidArgument, "Volume status must be available or error")
		volumetest.WantKind(t, s.volumes.Delete(volumetest.Within(t, 60), id), volume.Conflict, false)
	})
}

func TestAModifyRemovesTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, id := withNewVolume(t)
		if err := s.volumes.Modify(volumetest.Within(t, 60), id, provision.Change{Metadata: map[string]string{"team": "storage"}}); err != nil {
			t.Fatal(err)
		}
		if _, kept := s.recent.Take(id); kept {
			t.Error("the reading from before the change is kept")
		}
	})
}

func TestADetachWithAnOutdatedReadingReadsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		if _, err := s.attachments.Attach(volumetest.Within(t, 60), id, volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Change(id, func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
		c.Servers[volumetest.ServerA] = nil
		c.Fail["Detach"] = volume.Errorf(volume.NotFound, "no such attachment")
		if err := s.attachments.Detach(volumetest.Within(t, 60), id, volumetest.ServerA); err != nil || c.Count("Volume") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestAFailedWaitForADeletionIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		failing := provision.New(c, failingWaiter{c, volume.Errorf(volume.InvalidArgument, "no such list")}, provision.Options{Owner: volumetest.TestOwner, Recent: s.recent})
		volumetest.WantKind(t, failing.Delete(volumetest.Within(t, 60), id), volume.InvalidArgument, true)
		if c.Count("DeleteVolume") != 1 || c.Count("Volume") != 0 {
			t.Errorf("asked %v", c.Calls)
		}
	})
}

// failingWaiter fails every wait.
type failingWaiter struct {
	*volumetest.Cloud
	err error
}

func (r failingWaiter) Await(context.Context, volume.ID, func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	return volume.Volume{}, r.err
}
