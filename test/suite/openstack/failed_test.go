//go:build openstack

package openstack

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The driver never returns a snapshot that Cinder fails to create. It deletes that snapshot, and the next call creates another.
func TestASnapshotThatCinderFailsToMakeIsRemovedAndMadeAgain(t *testing.T) {
	dir := bed(t)
	d := startDriver(t, dir)
	for kind, operation := range map[string]string{"snapshot": "create_snapshot", "backup": "initialize_connection"} {
		t.Run(kind, func(t *testing.T) {
			v := newVolume(t, d, "ext4", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az1"} })
			fault := filepath.Join(dir, "state", "faults", operation)
			testfile.Write(t, fault, "delay=5 fail once\n", 0o600)
			defer os.Remove(fault)
			req := &csi.CreateSnapshotRequest{Name: "bed-" + rand.Text(), SourceVolumeId: v.GetVolumeId(), Parameters: map[string]string{"type": kind}}
			if _, err := d.controller.CreateSnapshot(t.Context(), req); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("want %s, got %v", codes.FailedPrecondition, err)
			} else {
				t.Log(err)
			}
			all, err := d.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SourceVolumeId: v.GetVolumeId()})
			if err != nil || len(all.GetEntries()) != 0 {
				t.Errorf("left: %v, %v", all, err)
			}
			// A call waits for a backup for ten seconds; external-snapshotter calls again.
			var again *csi.CreateSnapshotResponse
			eventually(t, "the snapshot is made", func() bool {
				again, err = d.controller.CreateSnapshot(t.Context(), req)
				return status.Code(err) != codes.Aborted
			})
			if err != nil || !again.GetSnapshot().GetReadyToUse() {
				t.Fatalf("got %v, %v", again, err)
			}
			deleteSnapshot(t, d, again.GetSnapshot().GetSnapshotId())
		})
	}
}
