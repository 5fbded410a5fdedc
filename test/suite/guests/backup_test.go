//go:build openstack

package guests

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// A backup of an encrypted volume in Ceph, and a volume made from it.
func TestABackupOfAnEncryptedVolume(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	for _, kind := range []string{"standard", encryptedType} {
		c := r.create(t, n, claim{}, 1, ofType(kind))
		n.use(t, c)
		var sums [3]string
		for i, at := range []int{0, 512, 1023} {
			n.mark(t, c, at)
			sums[i] = n.sh(t, n.sumAt(c, at))
		}
		n.leave(t, c)
		var backup string
		timed(t, "backup", func() error {
			eventually(t, "the backup", func() error {
				made, err := r.CreateSnapshot(within(t, patience), &csi.CreateSnapshotRequest{Name: "guests-" + c.id, SourceVolumeId: c.id, Parameters: map[string]string{"type": "backup"}})
				backup = made.GetSnapshot().GetSnapshotId()
				if err == nil && !made.GetSnapshot().GetReadyToUse() {
					err = fmt.Errorf("it is not ready")
				}
				return err
			})
			return nil
		})
		t.Cleanup(func() {
			_, err := r.DeleteSnapshot(within(t, patience), &csi.DeleteSnapshotRequest{SnapshotId: backup})
			must(t, "delete the backup", err)
		})
		var restored claim
		timed(t, "restore", func() error {
			restored = r.create(t, n, claim{}, 1, ofType(kind), fromSnapshot(backup))
			return nil
		})
		r.wantEncrypted(t, restored, kind == encryptedType)
		n.use(t, restored)
		n.wantSize(t, restored, 1<<30)
		for i, at := range []int{0, 512, 1023} {
			if got := n.sh(t, n.sumAt(restored, at)); got != sums[i] {
				t.Errorf("type %s: the mebibyte at %d of the restored volume: want checksum %s, got %s", kind, at, sums[i], got)
			}
		}
		n.leave(t, restored)
	}
}

func (n *node) sumAt(c claim, mebibyte int) string {
	return "dd if=" + c.target() + " bs=1M count=1 iflag=direct 2>/dev/null skip=" + strconv.Itoa(mebibyte) + " | md5sum"
}
