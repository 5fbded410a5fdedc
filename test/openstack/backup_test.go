//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// newBackup makes a backup of a volume as a user does, and waits for it.
func newBackup(t *testing.T, d *driver, user admin, volume string, incremental bool) string {
	t.Helper()
	var made struct{ Backup struct{ ID string } }
	user.call(t, http.MethodPost, "/backups", map[string]any{"backup": map[string]any{"volume_id": volume, "name": "bed-" + rand.Text(), "incremental": incremental}}, &made)
	t.Cleanup(func() { deleteSnapshot(t, d, made.Backup.ID) })
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		got, err := d.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: made.Backup.ID})
		if err != nil || len(got.GetEntries()) != 1 || got.GetEntries()[0].GetSnapshot().GetSourceVolumeId() != volume {
			t.Fatalf("backup %s of volume %s is listed as %v, %v", made.Backup.ID, volume, got, err)
		}
		if got.GetEntries()[0].GetSnapshot().GetReadyToUse() {
			return made.Backup.ID
		}
	}
	t.Fatalf("backup %s of volume %s is not ready after two minutes", made.Backup.ID, volume)
	return ""
}

// A snapshot handle that names a backup can be listed, restored in another zone after its volume is gone, and deleted.
func TestABackupIsRestoredAndDeletedThroughItsHandle(t *testing.T) {
	d, user := startDriver(t, bed(t)), newCaller(t, bed(t), "lab-demo")
	here, err := d.node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	v := newVolume(t, d, "xfs", func(r *csi.CreateVolumeRequest) {
		r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{here.GetAccessibleTopology()}}
	})
	m := mount(t, d, v, "xfs")
	data := []byte("before the backup " + rand.Text())
	if err := writeAt(m.file(), data); err != nil {
		t.Fatal(err)
	}
	m.down(t, t.Context())
	base := newBackup(t, d, user, v.GetVolumeId(), false)
	increment := newBackup(t, d, user, v.GetVolumeId(), true)
	if _, err := d.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}); err != nil {
		t.Errorf("deletion of a volume that has backups: %v", err)
	}
	_, err = d.controller.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: base})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ncremental") {
		t.Errorf("deletion of a backup that another rests on: want FailedPrecondition, got %v", err)
	}

	name, source := "bed-"+rand.Text(), &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: increment}}}
	restore := func(r *csi.CreateVolumeRequest) {
		r.Name, r.VolumeContentSource, r.CapacityRange.RequiredBytes = name, source, 2<<30
		r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{here.GetAccessibleTopology()}}
	}
	restored := newVolume(t, d, "xfs", restore)
	if again := newVolume(t, d, "xfs", restore); again.GetVolumeId() != restored.GetVolumeId() {
		t.Errorf("the same request gave %s and %s", restored.GetVolumeId(), again.GetVolumeId())
	}
	if restored.GetCapacityBytes() != 2<<30 || restored.GetVolumeContext()[contract.ContextResizeRequired] != "true" {
		t.Errorf("got %v", restored)
	}
	var cinder struct {
		Volume struct{ Metadata map[string]string }
	}
	user.call(t, http.MethodGet, "/volumes/"+restored.GetVolumeId(), nil, &cinder)
	if cinder.Volume.Metadata[contract.MetadataCluster] != "bed" || cinder.Volume.Metadata["src_backup_id"] != increment {
		t.Errorf("metadata %v", cinder.Volume.Metadata)
	}
	mount(t, d, restored, "xfs").wantData(t, data)

	for _, id := range []string{increment, base} {
		deleteSnapshot(t, d, id)
		gone(t, user, "/backups/"+id)
	}
}

// gone fails the test unless Cinder answers 404.
func gone(t *testing.T, user admin, path string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, user.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", user.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("%s: %s, want 404", path, response.Status)
	}
}
