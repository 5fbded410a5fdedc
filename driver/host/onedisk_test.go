package host

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// superOf is a disk with an ext superblock at those places, changed by do.
func superOf(do func(super []byte), places ...int) []byte {
	content := make([]byte, 40<<20)
	for _, at := range places {
		super := content[at:]
		binary.LittleEndian.PutUint16(super[56:], 0xEF53)
		super[4] = 1 // block
		if do != nil {
			do(super)
		}
	}
	return content
}

func TestAFileSystemThatReachesBeyondItsDiskIsNeitherCheckedNorMounted(t *testing.T) {
	t.Parallel()
	const journal, recovery, inode, device = 0x5C, 0x60, 0xE0, 0xE4
	options := func(text string) func([]byte) { return func(s []byte) { copy(s[0x200:0x240], text) } }
	btrfs := func(at int, value uint64) []byte {
		content := append(beginnings()["btrfs"], make([]byte, 16<<20)...)
		binary.LittleEndian.PutUint64(content[btrfsSuper+0x88:], 1)
		binary.LittleEndian.PutUint64(content[btrfsSuper+at:], value)
		return content
	}
	for _, c := range []struct {
		name, fsType string
		content      []byte
		words        string // of the refusal; empty for none
	}{
		{"no journal", "ext2", superOf(nil, extSuper), ""},
		{"a journal in the file system", "ext4", superOf(func(s []byte) { s[journal], s[inode] = 4, 8 }, extSuper), ""},
		{"a journal without a place", "ext4", superOf(func(s []byte) { s[journal] = 4 }, extSuper), "journal is on another device"},
		{"no journal, and one to recover", "ext4", superOf(func(s []byte) { s[recovery] = 4 }, extSuper), "journal is on another device"},
		{"a journal's device", "ext4", superOf(func(s []byte) { s[journal], s[inode], s[device] = 4, 8, 1 }, extSuper), "journal is on another device"},
		{"a journal's UUID", "ext3", superOf(func(s []byte) { s[inode], s[0xD0] = 8, 1 }, extSuper), "journal is on another device"},
		{"in the copy for blocks of 1 KiB", "ext4", superOf(func(s []byte) { s[device] = 1 }, 8193<<10), "journal is on another device"},
		{"in the copy for blocks of 2 KiB", "ext4", superOf(func(s []byte) { s[device] = 1 }, 32<<20), "journal is on another device"},
		{"in the copy that the superblock leads to", "ext4", append(superOf(func(s []byte) { s[0x18], s[0x20] = 2, 9 }, extSuper)[:9*4096],
			superOf(func(s []byte) { s[device] = 1 }, 0)...), "journal is on another device"},
		{"harmless mount options", "ext4", superOf(options("noatime,data=writeback,errors=panic"), extSuper), ""},
		{"a mount option that is refused", "ext4", superOf(options("noatime,journal_path=/dev/vda"), extSuper), `"journal_path=/dev/vda", which is refused: it uses another device`},
		{"mount options to the field's end", "ext4", superOf(options("data=writeback,data=writeback,data=writeback,Journal_Dev=0x801,ro,"), extSuper), `"Journal_Dev=0x801"`},
		{"a mount option that is no text", "ext4", superOf(options("journal_dev=\x1b[2J"), extSuper), `"journal_dev=?[2J"`},
		{"btrfs of one disk", "btrfs", btrfs(0x88, 1), ""},
		{"btrfs of two disks", "btrfs", btrfs(0x88, 2), "several disks"},
		{"btrfs of no disk", "btrfs", btrfs(0x88, 0), "several disks"},
		{"a btrfs that grows into others", "btrfs", btrfs(0x38, 1<<32), "several disks"},
		{"xfs", "xfs", append(beginnings()["xfs"], make([]byte, 16<<20)...), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, readOnly := range []bool{false, true} {
				b := newBench(t, Options{})
				disk := b.plug(t, "vdb", serial, Number{254, 16})
				disk.contents = c.content
				b.tools.answers["blkid"] = Result{Stdout: "TYPE=" + c.fsType + "\nUSAGE=filesystem\n"}
				if c.words == "" {
					must(t, checkOneDisk(&Disk{device: disk}, vol, c.fsType))
					continue
				}
				err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging"), ReadOnly: readOnly})
				wantKind(t, err, volume.Conflict, string(vol), "vdb", c.fsType, c.words)
				if len(b.mounter.table) != 0 || len(b.tools.changed()) != 0 {
					t.Errorf("want nothing run or mounted, got %q, %v", b.tools.changed(), b.mounter.table)
				}
			}
		})
	}
}

// e2fsck may put a copy of the superblock, which nobody has looked at, in the place of the first.
func TestAFileSystemIsLookedAtAgainAfterItWasChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	disk := b.plug(t, "vdb", serial, Number{254, 16})
	disk.contents = superOf(nil, extSuper)
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
	b.tools.during = func(name string) {
		if name == "fsck" {
			disk.contents = superOf(func(s []byte) { s[0xE4] = 1 }, extSuper)
		}
	}
	wantKind(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging")}), volume.Conflict, "journal is on another device")
	if len(b.mounter.table) != 0 {
		t.Errorf("want nothing mounted, got %v", b.mounter.table)
	}
}

// The kernel may know another disk of the same UUID by the time of the mount.
func TestABtrfsThatWasMountedWithAnotherDiskIsUnmountedAgain(t *testing.T) {
	for _, c := range []struct {
		disks uint64
		err   error
		kind  volume.Kind
		words string
	}{
		{2, nil, volume.Conflict, "a btrfs of 2 disks"},
		{0, errors.New("inappropriate ioctl"), volume.Failed, "inappropriate ioctl"},
	} {
		h, m, _ := realHost(t, 256<<20)
		h.btrfsDisks = func(path string) (uint64, error) {
			if n, err := btrfsDisks(path); n != 1 || err != nil {
				t.Errorf("want the kernel to tell of one disk, got %d, %v", n, err)
			}
			return c.disks, c.err
		}
		wantKind(t, h.Stage(t.Context(), Staging{Volume: vol, Path: m.Path("staging"), FSType: "btrfs"}), c.kind, c.words, string(vol))
		if n := countMounts(t, h, m); n != 0 {
			t.Errorf("want it unmounted, got %d mounts", n)
		}
	}
}

func TestABtrfsWhoseUUIDIsMountedAlreadySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=btrfs\nUSAGE=filesystem\n"}
	b.mounter.fail = volume.Errorf(volume.Failed, "mount %s: mount(2) system call failed: File exists.", filepath.Join(b.Dev, "vdb"))
	wantKind(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging")}), volume.Failed, "File exists", "the same UUID", "btrfstune -u")
}
