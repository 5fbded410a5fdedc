package host

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The kernel shows a SCSI disk without size if its scan came before the hypervisor had opened the volume.
func TestADiskWithoutSizeIsRescannedAndThenUsed(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	d, l := b.plugSCSI(t, "sda", string(vol), num(8, 0))
	d.resize(0)
	s := StageSpec{Volume: vol, Path: b.kubelet("staging")}
	wantKind(t, b.Stage(t.Context(), s), volume.Unavailable, "size of 0")
	if len(b.tools.ran) > 0 || l.Rescans() != 1 {
		t.Errorf("want one rescan and no tool, got %d, %q", l.Rescans(), b.tools.ran)
	}
	l.OnRescan(func() { d.resize(16 << 20) })
	must(t, b.Stage(t.Context(), s))
}

// superblockOf400MiB is the beginning of a disk with a file system of 400 MiB.
func superblockOf400MiB(fsType string) []byte {
	const size = 400 << 20
	disk := make([]byte, 1<<20)
	little, big := binary.LittleEndian, binary.BigEndian
	switch fsType {
	case "ext4":
		super := disk[extSuper:]
		little.PutUint16(super[56:], 0xEF53)
		little.PutUint32(super[24:], 2) // blocks of 4 KiB
		little.PutUint32(super[4:], size>>12)
	case "xfs":
		copy(disk, "XFSB")
		big.PutUint32(disk[4:], 4<<10)
		big.PutUint64(disk[8:], size>>12)
	case "btrfs":
		super := disk[btrfsSuper:]
		copy(super[0x40:], "_BHRfS_M")
		little.PutUint64(super[0x70:], size)
		little.PutUint64(super[0x88:], 1)
		little.PutUint64(super[0xC9+8:], size)
	}
	return disk
}

func TestAFileSystemLargerThanItsDiskIsRescannedAndNeverCalledDamaged(t *testing.T) {
	t.Parallel()
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			d, l := b.plugSCSI(t, "sda", string(vol), num(8, 0))
			d.resize(384 << 20)
			d.contents = superblockOf400MiB(fsType)
			b.tools.answers["blkid"] = Result{Stdout: "TYPE=" + fsType + "\nUSAGE=filesystem\n"}
			b.tools.answers["fsck.ext4"] = Result{Code: 4, Stdout: "UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY"}
			d.holes = true
			s := StageSpec{Volume: vol, Path: b.kubelet("staging"), FromSource: true}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := b.Stage(ctx, s)
			wantKind(t, err, volume.Conflict, "419430400 bytes", "402653184 bytes", "attach it again", "Do not run fsck")
			if strings.Contains(err.Error(), "run fsck on a copy") || len(b.tools.changed()) > 0 || len(b.mounter.table) > 0 {
				t.Errorf("want nothing run and no advice to repair, got %v, %q", err, b.tools.changed())
			}
			l.OnRescan(func() { d.resize(400 << 20) })
			b.tools.answers["fsck.ext4"] = Result{}
			if fsType != "btrfs" { // the fake mounts none
				must(t, b.Stage(ctx, s))
			}
		})
	}
}
