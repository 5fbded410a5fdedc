package tenant

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Offsets in a btrfs superblock (Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block).
const (
	btrfsSuper      = 64 << 10
	btrfsSize       = 4 << 10
	btrfsGeneration = 0x48
	btrfsDisks      = 0x88
	btrfsDiskID     = 0xC9
	btrfsDiskUUID   = 0xC9 + 66
)

// btrfsOf copies the superblock of a disk to another disk, which then claims to be a second, newer disk of the same file system.
func btrfsOf(t *testing.T, from, to string) {
	t.Helper()
	super := make([]byte, btrfsSize)
	f, err := os.Open(from)
	must(t, err)
	_, err = io.ReadFull(io.NewSectionReader(f, btrfsSuper, btrfsSize), super)
	must(t, errors.Join(err, f.Close()))
	little := binary.LittleEndian
	little.PutUint64(super[btrfsGeneration:], little.Uint64(super[btrfsGeneration:])+1000)
	little.PutUint64(super[btrfsDisks:], 2)
	little.PutUint64(super[btrfsDiskID:], 2)
	copy(super[btrfsDiskUUID:], "another disk's..")
	little.PutUint32(super, crc32.Checksum(super[32:], crc32.MakeTable(crc32.Castagnoli)))
	patch(t, to, btrfsSuper, super)
}

// The kernel opens every disk of a btrfs and recognizes the disks by their superblocks. An image of one tenant must not add the disk of
// another tenant to a mount.
func TestM1ABtrfsImageCannotDrawAnotherTenantsDiskIntoItsMount(t *testing.T) {
	n := newTenants(t, 256<<20)
	testenv.Run(t, "mkfs.btrfs", "-q", "-f", n.disks[attacker], n.disks[victim]) // and udev registers both with the kernel
	n.refused(t, claim{volume: attacker, pod: "evil", fsType: "btrfs"}, "several devices")
}

// A tenant who knows the UUID of another tenant's btrfs makes a disk that claims to be its second disk, or its clone. The driver mounts the
// other file system without that disk.
func TestM1ABtrfsOfTheSameUUIDDoesNotReachAnothersMount(t *testing.T) {
	for name, image := range map[string]func(t *testing.T, n *tenants){
		"a second disk": func(t *testing.T, n *tenants) { btrfsOf(t, n.disks[victim], n.disks[attacker]) },
		"a clone": func(t *testing.T, n *tenants) {
			testenv.Run(t, "dd", "if="+n.disks[victim], "of="+n.disks[attacker], "bs=1M", "conv=sparse,fsync", "status=none")
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTenants(t, 256<<20)
			good, evil := claim{volume: victim, pod: "good", fsType: "btrfs"}, claim{volume: attacker, pod: "evil", fsType: "btrfs"}
			n.lives(t, good)
			image(t, n)
			for _, disk := range n.disks {
				testenv.Run(t, "btrfs", "device", "scan", disk) // as udev does at each change of a disk
			}
			must(t, n.stage(t, good))
			must(t, os.WriteFile(filepath.Join(n.staging(good), "secret"), []byte("the victim's"), 0o600))
			if err := n.stage(t, evil); err == nil { // from Linux 6.7 on a clone is mounted beside its source
				if _, err := os.Stat(filepath.Join(n.staging(evil), "secret")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("want nothing of the victim's to be seen, got %v", err)
				}
				must(t, n.unstage(t, evil))
			}
			must(t, n.unstage(t, good))
			must(t, n.stage(t, good))
			if got, err := os.ReadFile(filepath.Join(n.staging(good), "secret")); string(got) != "the victim's" {
				t.Errorf("want the victim's data kept, got %q, %v", got, err)
			}
			must(t, n.unstage(t, good))
		})
	}
}

// Before the driver mounts a btrfs, it makes the kernel forget the disks of other volumes that udev has registered. So the mount opens only
// the disk of its own volume.
func TestM1TheKernelForgetsTheBtrfsOfOtherVolumesBeforeAMount(t *testing.T) {
	n := newTenants(t, 256<<20)
	first, second := testenv.Loop(t, 256<<20), testenv.Loop(t, 256<<20)
	n.Plug(t, "vdd", "d1f0a9c8-7b6e-4d5c-8", first)
	n.Plug(t, "vde", "e2a1b0d9-8c7f-4e6d-9", second)
	testenv.Run(t, "mkfs.btrfs", "-q", "-f", first, second)
	testenv.Run(t, "btrfs", "device", "scan", first, second)
	testenv.Run(t, "btrfs", "device", "ready", first) // the kernel knows both
	n.lives(t, claim{volume: victim, pod: "good", fsType: "btrfs"})
	if out, err := exec.Command("btrfs", "device", "ready", first).CombinedOutput(); err == nil {
		t.Errorf("want the kernel to know only the disk that was just registered, got both: %s", out)
	}
}
