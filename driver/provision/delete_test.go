package provision

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func TestDeleteReturnsOnceTheVolumeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.ForeignVolume(1, volume.Available)) // whatever its metadata: named means allowed
		if err := service(c).Delete(volumetest.Within(t, 60), volumetest.VolumeID(1)); err != nil || len(c.VolumesByID) != 0 {
			t.Errorf("got %v, left %v", err, c.VolumesByID)
		}
	})
}

func TestDeleteOfAMissingVolumeSucceeds(t *testing.T) {
	for _, id := range []volume.ID{volumetest.VolumeID(1), "", "vol-1", "../types/x"} {
		c := volumetest.NewCloud()
		if err := service(c).Delete(t.Context(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if !id.Exists() && len(c.Calls) != 0 {
			t.Errorf("%q was put into %v", id, c.Calls)
		}
	}
}

func TestDeleteOfAnAttachedVolumeNamesTheServers(t *testing.T) {
	c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: volumetest.ServerA}, {Server: volumetest.ServerB}}})
	err := service(c).Delete(t.Context(), volumetest.VolumeID(1))
	volumetest.WantKind(t, err, volume.Conflict, false)
	if !strings.Contains(err.Error(), string(volumetest.ServerA)) || !strings.Contains(err.Error(), string(volumetest.ServerB)) || c.Count("DeleteVolume") != 0 {
		t.Errorf("got %v after %v", err, c.Calls)
	}
}

func TestDeleteOfAVolumeWithSnapshotsIsAConflict(t *testing.T) {
	c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
	c.Fail["DeleteVolume"] = volume.Errorf(volume.InvalidArgument, "Volume must not have snapshots").Request("req-7")
	err := service(c).Delete(t.Context(), volumetest.VolumeID(1))
	volumetest.WantKind(t, err, volume.Conflict, false)
	if !strings.Contains(err.Error(), "snapshots") || !strings.Contains(err.Error(), "req-7") {
		t.Errorf("got %v", err)
	}
}

func TestDeleteThatFailsReturnsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Reason = "the backend is on fire"
		c.Hook["DeleteVolume"] = func() {
			time.AfterFunc(500*time.Millisecond, func() { c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "error_deleting" }) })
		}
		err := service(c).Delete(volumetest.Within(t, 60), volumetest.VolumeID(1))
		volumetest.WantKind(t, err, volume.Failed, true)
		if !strings.Contains(err.Error(), "on fire") {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteWaitsForADetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Detaching, Attachments: []volume.Attachment{{Server: volumetest.ServerA}}})
		time.AfterFunc(5*time.Second, func() {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
		})
		if err := service(c).Delete(volumetest.Within(t, 60), volumetest.VolumeID(1)); err != nil || len(c.VolumesByID) != 0 {
			t.Errorf("got %v, left %v", err, c.VolumesByID)
		}
	})
}

func testDeleteIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, status))
		err := service(c).Delete(volumetest.Within(t, 60), volumetest.VolumeID(1))
		sent := c.Count("DeleteVolume") == 1
		switch status.Meaning().Delete {
		case volume.Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case volume.Wait, volume.BeingDeleted:
			volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		default:
			volumetest.WantKind(t, err, volume.Conflict, false)
		}
		if sent && status.Meaning().Delete != volume.Proceed {
			t.Error("Cinder was asked")
		}
	})
}

func TestDeleteOfAVolumeAttachedToAHostNamesTheHost(t *testing.T) {
	err := service(volumetest.HostAttached()).Delete(t.Context(), volumetest.VolumeID(1))
	volumetest.WantKind(t, err, volume.Conflict, false)
	if !strings.Contains(err.Error(), "host kvm-7") {
		t.Errorf("delete: %v", err)
	}
}

func TestDeleteInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testDeleteIn(t, status) })
	}
}
