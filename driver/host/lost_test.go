package host

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// A file system whose first superblock is lost can be repaired from a copy. The driver does not format it, writes
// nothing, and names the command that brings the files back.
func TestAFileSystemWhoseFirstSuperblockIsLostIsRepairedAndNotFormatted(t *testing.T) {
	zeros := func(at, n int64) func(t *testing.T, disk string) {
		return func(t *testing.T, disk string) { t.Helper(); write(t, disk, at, make([]byte, n)) }
	}
	wipe := func(t *testing.T, disk string) { t.Helper(); testenv.Run(t, "wipefs", "--all", disk) }
	all := map[string]func(t *testing.T, disk string){"wipefs --all": wipe, "zeros over 4 KiB": zeros(0, 4<<10), "zeros over 4 MiB": zeros(0, 4<<20)}
	magic := map[string][2]int64{"ext2": {extSuper + 56, 2}, "ext3": {extSuper + 56, 2}, "ext4": {extSuper + 56, 2}, "xfs": {0, 4}, "btrfs": {btrfsSuper + 64, 8}}
	for fsType, repair := range map[string]string{
		"ext2": "e2fsck -f -y -b 32768 -B 4096 ", "ext3": "e2fsck -f -y -b 32768 -B 4096 ", "ext4": "e2fsck -f -y -b 32768 -B 4096 ",
		"xfs": "xfs_repair ", "btrfs": "btrfs-select-super -s 1 ",
	} {
		t.Run(fsType, func(t *testing.T) {
			b := newHunted(t, fsType)
			losses := map[string]func(t *testing.T, disk string){"the magic": zeros(magic[fsType][0], magic[fsType][1])}
			for name, loss := range all {
				if fsType != "btrfs" || name != "zeros over 4 KiB" { // the first superblock is at 64 KiB
					losses[name] = loss
				}
			}
			for name, loss := range losses {
				t.Run(name, func(t *testing.T) {
					x := newHostile(t, huntedSize)
					b.write(t, x.disk, nil)
					loss(t, x.disk)
					device := filepath.Join(x.Dev, "vdb")
					x.staysAsItIs(t, repair+device+".", StageSpec{FSType: fsType}, StageSpec{}, StageSpec{FSType: "ext4", FromSource: true}, StageSpec{FSType: "xfs", ReadOnly: true})
					wantKind(t, x.stage(t, StageSpec{}), volume.DataLoss, "blkdiscard --zeroout "+device, "snapshot")
					testenv.Run(t, "sh", "-c", "yes | "+repair+x.disk+" || [ $? -lt 4 ]")
					must(t, x.stage(t, StageSpec{FSType: fsType}))
					if found := countFiles(x.Path("staging")); found < 32 && name != "zeros over 4 MiB" { // which have inodes
						t.Errorf("want 32 files back, got %d", found)
					}
					must(t, x.Unpublish(t.Context(), x.Path("staging")))
				})
			}
		})
	}
}

func countFiles(dir string) (found int) {
	_ = filepath.WalkDir(dir, func(path string, _ iofs.DirEntry, _ error) error {
		if content, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(content), "datadata") {
			found++
		}
		return nil
	})
	return found
}

// A disk that is cleared by the command of the error is empty.
func TestADiskThatWasClearedIsFormatted(t *testing.T) {
	x := newHostile(t, huntedSize)
	newHunted(t, "ext4").write(t, x.disk, nil)
	testenv.Run(t, "wipefs", "--all", x.disk)
	err := x.stage(t, StageSpec{})
	wantKind(t, err, volume.DataLoss, "blkdiscard --zeroout ")
	testenv.Run(t, "blkdiscard", "--zeroout", x.disk)
	must(t, x.stage(t, StageSpec{}))
	must(t, x.Unpublish(t.Context(), x.Path("staging")))
}

// The same copies decide whether a disk that is in use elsewhere may be detached.
func TestAFileSystemWhoseFirstSuperblockIsLostIsNotDetachedWhileItIsMounted(t *testing.T) {
	for fsType, at := range map[string]int64{"ext4": extSuper + 56, "xfs": 0, "btrfs": btrfsSuper + 64} {
		t.Run(fsType, func(t *testing.T) {
			h, m, disk := realHost(t, huntedSize)
			staging, copied := m.Path("staging"), m.Path("container")
			stage(t, h, StageSpec{Path: staging, FSType: fsType})
			must(t, os.MkdirAll(copied, 0o755))
			_, end := elsewhere(t, `mount --bind "$1" "$2"`, staging, copied)
			defer end()
			testenv.Run(t, "sync", "--file-system", staging)
			write(t, disk, at, make([]byte, 2))
			wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy, "mounted or in use elsewhere")
		})
	}
}

func TestABlankDiskThatIsMountedElsewhereIsNotFormatted(t *testing.T) {
	t.Parallel()
	for _, fsType := range []string{"ext4", "xfs"} {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("pod"), FSType: fsType, Source: "/dev/vdb", Options: []string{"rw"}})
		wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s"), FSType: fsType}), volume.DataLoss, "mounted elsewhere")
		if ran := b.tools.changed(); len(ran) > 0 {
			t.Errorf("want nothing run, got %q", ran)
		}

		b = newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.kernel.inUse = func(string) bool { return true }
		wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s"), FSType: fsType}), volume.Busy, "uses the disk", fmt.Sprintf("as %s", fsType))
		if ran := b.tools.changed(); len(ran) > 0 {
			t.Errorf("want nothing run, got %q", ran)
		}
	}
}
