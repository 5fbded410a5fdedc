package provision

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestDeleteReturnsOnceTheVolumeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.ForeignVolume(1, volume.Available)) // whatever its metadata: named means allowed
		if err := service(c).Delete(cloudtest.Within(t, 60), cloudtest.VolumeID(1)); err != nil || len(c.Volumes()) != 0 {
			t.Errorf("got %v, left %v", err, c.Volumes())
		}
	})
}

func TestDeleteOfAMissingVolumeSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, id := range []volume.ID{cloudtest.VolumeID(1), "", "vol-1", "../types/x"} {
			c := cloudtest.New(t)
			if err := service(c).Delete(t.Context(), id); err != nil {
				t.Errorf("%q: %v", id, err)
			}
			if !id.Exists() && len(c.Calls) != 0 {
				t.Errorf("%q was put into %v", id, c.Calls)
			}
		}
	})
}

func TestDeleteOfAnAttachedVolumeNamesTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}, {Server: cloudtest.ServerB}}})
		err := service(c).Delete(t.Context(), cloudtest.VolumeID(1))
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), string(cloudtest.ServerA)) || !strings.Contains(err.Error(), string(cloudtest.ServerB)) || c.Count("DeleteVolume") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestDeleteOfAVolumeWithSnapshotsIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
		err := service(c).Delete(t.Context(), cloudtest.VolumeID(1))
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), "snapshots") || !strings.Contains(err.Error(), "(request req-") {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteThatFailsReturnsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Reason = "the backend is on fire"
		c.Hook["DeleteVolume"] = func() {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.DeleteVolume})
		}
		err := service(c).Delete(cloudtest.Within(t, 60), cloudtest.VolumeID(1))
		cloudtest.WantKind(t, err, volume.Failed, true)
		if !strings.Contains(err.Error(), "on fire") {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteWaitsForADetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Detaching, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}}})
		time.AfterFunc(5*time.Second, func() {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
		})
		if err := service(c).Delete(cloudtest.Within(t, 60), cloudtest.VolumeID(1)); err != nil || len(c.Volumes()) != 0 {
			t.Errorf("got %v, left %v", err, c.Volumes())
		}
	})
}

func testDeleteIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, status))
		err := service(c).Delete(cloudtest.Within(t, 60), cloudtest.VolumeID(1))
		sent := c.Count("DeleteVolume") == 1
		switch status.Meaning().Delete {
		case volume.Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case volume.Wait, volume.BeingDeleted:
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		default:
			cloudtest.WantKind(t, err, volume.Conflict, false)
		}
		if sent && status.Meaning().Delete != volume.Proceed {
			t.Error("Cinder was asked")
		}
	})
}

func TestDeleteOfAVolumeAttachedToAHostNamesTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := service(cloudtest.NewWith(t, cloudtest.AsAdmin, cloudtest.HostAttached())).Delete(t.Context(), cloudtest.VolumeID(1))
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), "host kvm-7") {
			t.Errorf("delete: %v", err)
		}
	})
}

func TestDeleteInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testDeleteIn(t, status) })
	}
}
