//go:build openstack

package guests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// Cinder's backup driver for Ceph leaves out the last bytes of an encrypted volume that has never grown. The driver makes no such backup, and of a
// plain volume every sample comes back.
func TestABackupHasEveryByteOrIsRefused(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	secret := r.create(t, n, claim{}, 1, ofType(encryptedType))
	for _, when := range []string{"after Cinder has made it", "before"} {
		timed(t, "refusal, "+when, func() error {
			id, err := r.backup(t, secret)
			t.Logf("CreateSnapshot: %s %v", id, err)
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), secret.id+" is encrypted") {
				return fmt.Errorf("want a refusal because the volume is encrypted, got %s, %w", id, err)
			}
			return nil
		})
	}
	var left struct{ Backups, Snapshots []struct{ ID string } }
	send(t, r.cinder, http.MethodGet, "backups?volume_id="+secret.id, nil, &left)
	send(t, r.cinder, http.MethodGet, "snapshots?volume_id="+secret.id, nil, &left)
	if len(left.Backups)+len(left.Snapshots) > 0 {
		t.Errorf("want nothing left of the refused backups, got %v", left)
	}

	c := r.create(t, n, claim{}, 1)
	n.use(t, c)
	n.mark(t, c, 0)
	n.mark(t, c, 1023)
	sum := n.sample(t, c, 1)
	n.leave(t, c)
	var backup string
	timed(t, "backup of a plain volume", func() (err error) { backup, err = r.backup(t, c); return err })
	t.Cleanup(func() {
		_, err := r.DeleteSnapshot(within(t, patience), &csi.DeleteSnapshotRequest{SnapshotId: backup})
		must(t, "delete the backup", err)
	})
	var restored claim
	timed(t, "volume from the backup", func() error { restored = r.create(t, n, claim{}, 1, csitest.FromSnapshot(backup)); return nil })
	n.use(t, restored)
	if got := n.sample(t, restored, 1); got != sum {
		t.Errorf("want the bytes with checksum %s back, got %s", sum, got)
	}
	n.leave(t, restored)
}

// backup asks for a backup until it is there or refused.
func (r *region) backup(t *testing.T, c claim) (id string, refusal error) {
	t.Helper()
	eventually(t, "the backup is there or refused", func() error {
		made, err := r.CreateSnapshot(within(t, patience), &csi.CreateSnapshotRequest{
			Name: "guests-" + c.id, SourceVolumeId: c.id, Parameters: map[string]string{"type": "backup"},
		})
		switch status.Code(err) {
		case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded:
			return err
		}
		id, refusal = made.GetSnapshot().GetSnapshotId(), err
		return nil
	})
	return id, refusal
}
