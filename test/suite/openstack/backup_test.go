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
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// newBackup creates a backup of a volume as external-snapshotter does, and returns the request too.
func newBackup(t *testing.T, d *driver, volume, incremental string) (string, *csi.CreateSnapshotRequest) {
	t.Helper()
	req := &csi.CreateSnapshotRequest{
		Name: "bed-" + rand.Text(), SourceVolumeId: volume,
		Parameters: forInUse(t, map[string]string{"type": "backup", "incremental": incremental, "backup-max-duration-seconds-per-gb": "600"}),
	}
	began := time.Now()
	for {
		made, err := d.controller.CreateSnapshot(t.Context(), req)
		if status.Code(err) == codes.Aborted && time.Since(began) < 5*time.Minute { // it takes longer than one call waits
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		id := made.GetSnapshot().GetSnapshotId()
		t.Cleanup(func() { deleteSnapshot(t, d, id) })
		t.Logf("backup %s was returned after %v", id, time.Since(began))
		got, err := d.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: id})
		if err != nil || len(got.GetEntries()) != 1 || got.GetEntries()[0].GetSnapshot().GetSourceVolumeId() != volume {
			t.Fatalf("backup %s of volume %s is listed as %v, %v", id, volume, got, err)
		}
		if !made.GetSnapshot().GetReadyToUse() {
			t.Fatalf("what was returned is not ready: %v", made)
		}
		return id, req
	}
}

// A snapshot handle that names a backup can be listed, restored in another zone after its volume is gone, and deleted.
func TestABackupIsRestoredAndDeletedThroughItsHandle(t *testing.T) {
	if backendOf(t, bed(t)) == "ceph" {
		t.Skip("Ceph keeps one backup of a snapshot for each volume; TestCephKeepsOneBackupOfASnapshotForEachVolume is about that")
	}
	d, user := startDriver(t, bed(t)), newCaller(t, bed(t), "lab-demo")
	near := d.near(t)
	v := newVolume(t, d, "xfs", near)
	m := mount(t, d, v, "xfs")
	data := []byte("before the backup " + rand.Text())
	testenv.Must(t, writeAt(m.file(), data))
	m.down(t, t.Context())
	base, baseRequest := newBackup(t, d, v.GetVolumeId(), "true") // a full backup, because the volume has no earlier one
	if again, err := d.controller.CreateSnapshot(t.Context(), baseRequest); err != nil || again.GetSnapshot().GetSnapshotId() != base {
		t.Errorf("the same request gave %v, %v", again, err)
	}
	more := []byte("after the first backup " + rand.Text())
	m = mount(t, d, v, "xfs") // in use
	testenv.Must(t, writeAt(m.file(), more))
	increment, _ := newBackup(t, d, v.GetVolumeId(), "true")
	m.down(t, t.Context())
	for id, rests := range map[string]bool{base: false, increment: true} {
		var cinder struct {
			Backup struct {
				IsIncremental bool `json:"is_incremental"`
			}
		}
		user.call(t, http.MethodGet, "/backups/"+id, nil, &cinder)
		if cinder.Backup.IsIncremental != rests {
			t.Errorf("backup %s: incremental is %v", id, cinder.Backup.IsIncremental)
		}
	}
	var left struct{ Snapshots []any }
	if user.call(t, http.MethodGet, "/snapshots?volume_id="+v.GetVolumeId(), nil, &left); len(left.Snapshots) != 0 {
		t.Errorf("temporary snapshots are left: %v", left.Snapshots)
	}
	if _, err := d.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}); err != nil {
		t.Errorf("deletion of a volume that has backups: %v", err)
	}
	_, err := d.controller.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: base})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ncremental") {
		t.Errorf("deletion of a backup that another rests on: want FailedPrecondition, got %v", err)
	}

	name := "bed-" + rand.Text()
	restore := func(r *csi.CreateVolumeRequest) {
		r.Name, r.CapacityRange.RequiredBytes = name, 2<<30
		csitest.FromSnapshot(increment)(r)
		near(r)
	}
	restored := newVolume(t, d, "xfs", restore)
	if again := newVolume(t, d, "xfs", restore); again.GetVolumeId() != restored.GetVolumeId() {
		t.Errorf("the same request gave %s and %s", restored.GetVolumeId(), again.GetVolumeId())
	}
	if restored.GetCapacityBytes() != 2<<30 || restored.GetVolumeContext()[contract.ContextResizeRequired] != "true" {
		t.Errorf("got %v", restored)
	}
	var cinder struct {
		Volume struct {
			Description string
			Metadata    map[string]string
		}
	}
	user.call(t, http.MethodGet, "/volumes/"+restored.GetVolumeId(), nil, &cinder)
	if token, sent, ok := contract.ParseDescriptionOfRestored(cinder.Volume.Description); !ok || sent.IsZero() || token != cinder.Volume.Metadata[contract.MetadataRequest] {
		t.Errorf("description %q", cinder.Volume.Description)
	}
	if cinder.Volume.Metadata[contract.MetadataCluster] != "bed" || cinder.Volume.Metadata["src_backup_id"] != increment {
		t.Errorf("metadata %v", cinder.Volume.Metadata)
	}
	m = mount(t, d, restored, "xfs")
	m.wantData(t, more)
	m.down(t, t.Context()) // the next volume has the same file system UUID
	first := func(r *csi.CreateVolumeRequest) {
		restore(r)
		r.Name, r.CapacityRange.RequiredBytes = "bed-"+rand.Text(), 1<<30
		csitest.FromSnapshot(base)(r)
	}
	mount(t, d, newVolume(t, d, "xfs", first), "xfs").wantData(t, data)

	for _, id := range []string{increment, base} {
		deleteSnapshot(t, d, id)
		gone(t, user, "/backups/"+id)
	}
}

// gone fails the test unless Cinder answers 404.
func gone(t *testing.T, user admin, path string) {
	t.Helper()
	request := testenv.Value(http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, user.url+path, nil))(t)
	request.Header.Set("X-Auth-Token", user.token)
	response := testenv.Value(http.DefaultClient.Do(request))(t)
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("%s: %s, want 404", path, response.Status)
	}
}

// Ten days of a schedule for a volume that nobody writes to. In a chunked store the incremental backups have no objects, which is no sign of Ceph.
func TestTenIncrementalBackupsOfAnUnchangedVolume(t *testing.T) {
	if backendOf(t, bed(t)) == "ceph" {
		t.Skip("Ceph keeps one backup of a snapshot for each volume")
	}
	d, user := startDriver(t, bed(t)), newCaller(t, bed(t), "lab-demo")
	v := newVolume(t, d, "xfs", d.near(t))
	for day := range 10 {
		id, _ := newBackup(t, d, v.GetVolumeId(), "true")
		var cinder struct {
			Backup struct {
				Objects     int  `json:"object_count"`
				Incremental bool `json:"is_incremental"`
			}
		}
		user.call(t, http.MethodGet, "/backups/"+id, nil, &cinder)
		if b := cinder.Backup; b.Incremental != (day > 0) || (b.Objects == 0) != (day > 0) {
			t.Errorf("day %d: %+v", day, b)
		}
	}
}
