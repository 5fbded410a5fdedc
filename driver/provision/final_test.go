package provision

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// After a final error the sidecar forgets the claim, and nobody would delete the volume that another request for it created.
func TestCreateIsNotFinalWhileAnotherVolumeHasTheName(t *testing.T) {
	at := func(v volume.Volume, second int) volume.Volume {
		v.CreatedAt = time.Now().Add(time.Duration(second) * time.Second)
		return v
	}
	for name, test := range map[string]struct {
		begin func(c *cloudtest.Cloud)
		kind  volume.Kind
	}{
		"the oldest failed, a younger is there": {func(c *cloudtest.Cloud) {
			c.Put(at(cloudtest.OwnVolume(1, volume.ErrorStatus), 0))
			c.Put(at(cloudtest.OwnVolume(7, volume.Available), 2))
		}, volume.Failed},
		"one of the same second failed": {func(c *cloudtest.Cloud) {
			c.Put(at(cloudtest.OwnVolume(1, volume.ErrorStatus), 0))
			c.Put(at(cloudtest.OwnVolume(7, volume.Available), 0))
		}, volume.Failed},
		"its own failed, another replica's is there": {func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume})
			c.Hook["CreateVolume"] = func() { c.Put(at(cloudtest.OwnVolume(7, volume.Available), -2)) }
		}, volume.Failed},
		"refused, another replica's is there": {func(c *cloudtest.Cloud) {
			c.Fail["CreateVolume"] = volume.Errorf(volume.Exhausted, "HTTP 413")
			c.Hook["CreateVolume"] = func() { c.Put(at(cloudtest.OwnVolume(7, volume.Creating), 0)) }
		}, volume.Exhausted},
		"no zone can have it, another replica's is there": {func(c *cloudtest.Cloud) {
			c.Fail["VolumeZones"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
			c.Hook["VolumeZones"] = func() { c.Put(at(cloudtest.OwnVolume(7, volume.Available), 0)) }
			c.Fail["CreateVolume"] = volume.Errorf(volume.NotInZone, "HTTP 400")
		}, volume.NotInZone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t)
				test.begin(c)
				s, spec := service(c), zonal("az1")
				spec.Name, spec.Size = gib.Name, gib.Size
				_, err := s.Create(cloudtest.Within(t, 60), spec)
				cloudtest.WantKind(t, err, test.kind, true)
				clear(c.Hook)
				c.Change(cloudtest.VolumeID(7), func(v *volume.Volume) { v.Status = volume.Available })
				v, err := s.Create(cloudtest.Within(t, 60), spec)
				if err != nil || v.ID != cloudtest.VolumeID(7) || len(c.Remaining()) != 1 {
					t.Errorf("the next try: got %s, %v; left %v", v.ID, err, c.Remaining())
				}
			})
		})
	}
}

func TestCreateIsNotFinalWhereTheNameCannotBeReadAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Fail["CreateVolume"] = volume.Errorf(volume.Exhausted, "HTTP 413")
		c.Hook["CreateVolume"] = func() { c.Fail["VolumesNamed"] = volume.Errorf(volume.Unavailable, "HTTP 503") }
		_, err := service(c).Create(cloudtest.Within(t, 60), gib)
		cloudtest.WantKind(t, err, volume.Exhausted, true)
	})
}

func TestCreateSearchesForTheNameOnceAndSharesTheListAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		if _, err := service(c).Create(cloudtest.Within(t, 60), gib); err != nil || c.Count("VolumesNamed") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}
