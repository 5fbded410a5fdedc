//go:build openstack

package openstack

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What Cinder fails to make after it was answered with stays, whichever driver is asked, until it is deleted by its handle; nothing is
// made in its place.
func TestWhatFailsAfterItWasAnsweredWithStaysTheHandle(t *testing.T) {
	dir := bed(t)
	d, other := startDriver(t, dir), startDriver(t, dir)
	for kind, operation := range map[string]string{"snapshot": "create_snapshot", "backup": "initialize_connection"} {
		t.Run(kind, func(t *testing.T) {
			v := newVolume(t, d, "ext4", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az1"} })
			fault := filepath.Join(dir, "state", "faults", operation)
			if err := os.WriteFile(fault, []byte("delay=5 fail once\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(fault)
			req := &csi.CreateSnapshotRequest{Name: "bed-" + rand.Text(), SourceVolumeId: v.GetVolumeId(), Parameters: map[string]string{"type": kind}}
			first, err := d.controller.CreateSnapshot(t.Context(), req)
			if err != nil || first.GetSnapshot().GetReadyToUse() {
				t.Fatalf("want it not ready, got %v, %v", first, err)
			}
			handle := first.GetSnapshot().GetSnapshotId()
			t.Cleanup(func() { deleteSnapshot(t, d, handle) })
			for begun := time.Now(); err == nil; time.Sleep(500 * time.Millisecond) {
				var p *csi.CreateSnapshotResponse
				if p, err = d.controller.CreateSnapshot(t.Context(), req); err == nil && (p.GetSnapshot().GetSnapshotId() != handle || p.GetSnapshot().GetReadyToUse()) || time.Since(begun) > time.Minute {
					t.Fatalf("want %s not ready, got %v", handle, p)
				}
			}
			for _, d := range []*driver{d, other, d} {
				if _, err := d.controller.CreateSnapshot(t.Context(), req); status.Code(err) != codes.FailedPrecondition {
					t.Errorf("want %s, got %v", codes.FailedPrecondition, err)
				} else {
					t.Log(err)
				}
			}
			if _, err := other.controller.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: handle}); err != nil {
				t.Errorf("%s %s stays: %v", kind, handle, err)
			}
			all, err := d.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SourceVolumeId: v.GetVolumeId()})
			if err != nil || len(all.GetEntries()) != 0 {
				t.Errorf("left: %v, %v", all, err)
			}
		})
	}
}
