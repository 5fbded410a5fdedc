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
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// withNewVolume returns a cloud, its services, and a volume that Create has just created there.
func withNewVolume(t *testing.T) (*cloudtest.Cloud, services, volume.ID) {
	t.Helper()
	c := cloudtest.New(t)
	recent := &observe.Recent{}
	s := services{provision.New(c, c, provision.Options{Owner: cloudtest.TestOwner, Recent: recent}), attach.New(c, c, attach.Options{Recent: recent}), recent}
	v, err := s.volumes.Create(cloudtest.Within(t, 60), provision.CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}})
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
		if _, err := s.attachments.Attach(cloudtest.Within(t, 60), id, cloudtest.ServerA); err != nil || c.Count("Volume") != 0 {
			t.Errorf("attach: %v after %v", err, c.Calls)
		}
		if err := s.attachments.Detach(cloudtest.Within(t, 60), id, cloudtest.ServerA); err != nil || c.Count("Volume") != 0 {
			t.Errorf("detach: %v after %v", err, c.Calls)
		}
		if err := s.volumes.Delete(cloudtest.Within(t, 60), id); err != nil || c.Count("Volume") != 0 || len(c.Volumes()) != 0 {
			t.Errorf("delete: %v after %v", err, c.Calls)
		}
	})
}

func TestAReadingServesOneCallWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 503")
		for range 2 {
			_, err := s.attachments.Attach(cloudtest.Within(t, 60), id, cloudtest.ServerA)
			cloudtest.WantKind(t, err, volume.Unavailable, false)
		}
		if c.Count("Volume") != 1 {
			t.Errorf("the second attach did not read the volume: %v", c.Calls)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		time.Sleep(5 * time.Second)
		if err := s.volumes.Delete(cloudtest.Within(t, 60), id); err != nil || c.Count("Volume") != 1 {
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
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerB}}
		}, volume.Conflict},
		"attached here": {func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerA}}
		}, volume.Unknown},
		"retyped to multiattach": {func(v *volume.Volume) { v.Multiattach = true }, volume.Unknown},
		"in error":               {func(v *volume.Volume) { v.Status = "error" }, volume.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, id := withNewVolume(t)
				c.Change(id, test.now)
				if v, _ := c.Read(id); v.AttachedTo(cloudtest.ServerA) {
					c.List(id, cloudtest.ServerA)
				}
				v, err := s.attachments.Attach(cloudtest.Within(t, 60), id, cloudtest.ServerA)
				if test.want == volume.Unknown && (err != nil || (v.Status != volume.InUse || !v.AttachedTo(cloudtest.ServerA))) {
					t.Errorf("got %v, %v after %v", v, err, c.Calls)
				}
				if test.want != volume.Unknown {
					cloudtest.WantKind(t, err, test.want, false)
				}
			})
		})
	}
}

func TestADeleteWithAnOutdatedReadingReadsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		c.Change(id, func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerB}}
		})
		cloudtest.WantKind(t, s.volumes.Delete(cloudtest.Within(t, 60), id), volume.Conflict, false)
	})
}

func TestAModifyRemovesTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, id := withNewVolume(t)
		if err := s.volumes.Modify(cloudtest.Within(t, 60), id, provision.Change{Metadata: map[string]string{"team": "storage"}}); err != nil {
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
		if _, err := s.attachments.Attach(cloudtest.Within(t, 60), id, cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		c.Change(id, func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
		c.List(id)
		if err := s.attachments.Detach(cloudtest.Within(t, 60), id, cloudtest.ServerA); err != nil || c.Count("Volume") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestAFailedWaitForADeletionIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := withNewVolume(t)
		failing := provision.New(c, failingWaiter{c, volume.Errorf(volume.InvalidArgument, "no such list")}, provision.Options{Owner: cloudtest.TestOwner, Recent: s.recent})
		cloudtest.WantKind(t, failing.Delete(cloudtest.Within(t, 60), id), volume.InvalidArgument, true)
		if c.Count("DeleteVolume") != 1 || c.Count("Volume") != 0 {
			t.Errorf("asked %v", c.Calls)
		}
	})
}

// failingWaiter fails every wait.
type failingWaiter struct {
	*cloudtest.Cloud
	err error
}

func (r failingWaiter) Await(context.Context, volume.ID, func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	return volume.Volume{}, r.err
}
