//go:build openstack

package guests

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// encryptedType is the type of the cloud whose volumes the hypervisor encrypts: LUKS, with a key in Barbican.
const encryptedType = "encrypted"

// The size tolerance of the driver, which is for the LUKS header (driver/host/disk).
const sizeTolerance = 32 << 20

// The life of a volume of an encrypted type. QEMU decrypts, so the guest sees plain bytes, and Ceph has none of them.
func TestAnEncryptedVolumeLivesInGuests(t *testing.T) {
	r := newRegion(t)
	one, two := r.node(t, r.serverNamed(t, "node-az1")), r.node(t, r.serverNamed(t, "node-az2"))
	var c claim
	timed(t, "create", func() error { c = r.create(t, one, claim{fsType: "ext4"}, 1, ofType(encryptedType)); return nil })
	r.wantEncrypted(t, c, true)
	one.use(t, c)
	one.wantSize(t, c, 1<<30)
	sum := one.write(t, c, "before")

	timed(t, "expand in use", func() error { return r.expand(t, c, 2<<30) })
	timed(t, "expand in use: node", func() error { return one.expand(t, c, 2<<30) })
	one.wantSize(t, c, 2<<30)
	one.wantData(t, c, "before", sum)

	var snapshot string
	timed(t, "snapshot in use", func() error { snapshot = r.snapshot(t, c); return nil })
	one.write(t, c, "after")
	var restored, clone claim
	timed(t, "create from the snapshot", func() error {
		restored = r.create(t, one, claim{fsType: "ext4"}, 2, ofType(encryptedType), csitest.FromSnapshot(snapshot))
		return nil
	})
	timed(t, "clone, larger", func() error {
		clone = r.create(t, one, claim{fsType: "ext4"}, 3, ofType(encryptedType), csitest.FromVolume(c.id))
		return nil
	})
	one.leave(t, c)

	timed(t, "expand offline", func() error { return r.expand(t, c, 3<<30) })
	one.use(t, c)
	timed(t, "expand offline: node", func() error { return one.expand(t, c, 3<<30) })
	one.wantSize(t, c, 3<<30)
	one.wantData(t, c, "before", sum)
	one.leave(t, c)

	two.use(t, restored)
	two.wantSize(t, restored, 2<<30)
	two.wantData(t, restored, "before", sum)
	if got := two.sh(t, "ls "+restored.target()); strings.Contains(got, "after") {
		t.Errorf("the snapshot has what was written after it: %s", got)
	}
	two.leave(t, restored)
	two.use(t, clone)
	timed(t, "expand the clone: node", func() error { return two.expand(t, clone, 3<<30) })
	two.wantSize(t, clone, 3<<30)
	two.wantData(t, clone, "before", sum)
	two.leave(t, clone)
}

// The bytes of an encrypted volume are not in its image. Those of a plain one are, which proves that the search finds them.
func TestTheBytesOfAnEncryptedVolumeAreNotInCeph(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	for _, test := range []struct {
		volumeType string
		found      bool
	}{{"standard", true}, {encryptedType, false}} {
		c := r.create(t, n, claim{}, 1, ofType(test.volumeType))
		n.use(t, c)
		marker := rand.Text() + rand.Text()
		n.sh(t, fmt.Sprintf("yes %s | dd of=%s bs=1M count=1 seek=300 iflag=fullblock oflag=direct 2>/dev/null; sync", marker, c.target()))
		if got := n.sh(t, "dd if="+c.target()+" bs=1M skip=300 count=1 iflag=direct 2>/dev/null | grep -c "+marker); got == "0" {
			t.Errorf("type %s: the guest does not find what it wrote", test.volumeType)
		}
		n.leave(t, c)
		var found, luks bool
		timed(t, "read the image of type "+test.volumeType, func() (err error) { found, luks, err = r.searchImage(t, c, marker); return err })
		if found != test.found || luks == test.found {
			t.Errorf("type %s: want the marker in the image: %t, LUKS: %t; got %t, %t", test.volumeType, test.found, !test.found, found, luks)
		}
	}
}

// searchImage reads the image of a volume in Ceph. It returns whether a text is there, and whether the image begins as LUKS does.
func (r *region) searchImage(t *testing.T, c claim, text string) (found, luks bool, err error) {
	t.Helper()
	cmd := r.rbdCommand(t, "export", "--no-progress", "az1-standard/volume-"+c.id, "-")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return false, false, err
	}
	image := bufio.NewReaderSize(out, 1<<20)
	head, err := image.Peek(6)
	must(t, "read the image", err)
	luks = bytes.Equal(head, []byte("LUKS\xba\xbe"))
	block, carried := make([]byte, 4<<20), 0
	for err == nil {
		var n int
		n, err = io.ReadFull(image, block[carried:])
		read := block[:carried+n]
		found = found || bytes.Contains(read, []byte(text))
		carried = copy(block, read[max(0, len(read)-len(text)):])
	}
	return found, luks, cmd.Wait()
}

// rbd runs the command-line tool of Ceph's images.
func (r *region) rbd(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.rbdCommand(t, args...).Output()
	must(t, "rbd "+strings.Join(args, " "), err)
	return string(out)
}

func (r *region) rbdCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// rbd is in the root directory of the cloud, which no process outside sees.
	pid, err := os.ReadFile(filepath.Join(r.bed, "run", "ceph-mon.pid"))
	must(t, "find the root directory of the cloud", err)
	process, _, _ := strings.Cut(string(pid), " ")
	cmd := exec.Command("nsenter", append([]string{
		"--target", process, "--mount", "--root", "--wd=/",
		"rbd", "--conf", filepath.Join(r.bed, "etc", "ceph", "ceph.conf"),
	}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// wantSize checks that the disk in the guest is as large as the claim, or smaller by less than the tolerance of the driver. The log has by how much.
func (n *node) wantSize(t *testing.T, c claim, claimed int64) {
	t.Helper()
	var sectors int64
	_, err := fmt.Sscan(n.sh(t, "cat /sys/block/"+n.device(c)+"/size"), &sectors)
	must(t, "read the size of the disk", err)
	smaller := claimed - sectors*512
	t.Logf("%-40s %d bytes, %d smaller than the claim", "the disk of "+c.id, sectors*512, smaller)
	if smaller < 0 || smaller > sizeTolerance {
		t.Errorf("volume %s: want a disk of %d bytes, or smaller by at most %d; got %d", c.id, claimed, sizeTolerance, sectors*512)
	}
}

func (r *region) wantEncrypted(t *testing.T, c claim, want bool) {
	t.Helper()
	if v, err := r.volume(t, c.id); err != nil || v.Encrypted != want {
		t.Errorf("volume %s: want encrypted: %t of Cinder, got %t %v", c.id, want, v.Encrypted, err)
	}
}
