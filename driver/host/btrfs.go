package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Requests of Linux, include/uapi/linux/btrfs.h.
const (
	btrfsForgetDev = 0x50009405 // to /dev/btrfs-control; struct btrfs_ioctl_vol_args
	btrfsFSInfo    = 0x8400941F // to a mounted file system; struct btrfs_ioctl_fs_info_args
)

// forgetDisks has the kernel drop what it knows of the btrfs on this machine's volumes that are not mounted. udev tells it of each btrfs that
// appears on a disk, and before Linux 6.8 a mount opens every disk that it knows under the file system's UUID: a tenant who knows the UUID, as
// of a clone of the same image, could add a disk to another tenant's file system. The mount that follows tells it of its own disk.
func (h *Host) forgetDisks(ctx context.Context) {
	control, err := os.OpenFile(filepath.Join(h.dev, "btrfs-control"), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return // nothing has used btrfs yet
	}
	if err != nil {
		h.log.WarnContext(ctx, "the kernel is not asked to forget the btrfs of unmounted volumes; a tenant's disk may be taken for a part of another's", "error", err)
		return
	}
	defer control.Close()
	names, err := h.diskNames()
	if err != nil {
		return
	}
	for _, name := range names {
		if !h.recall(name).isVolume() {
			continue // the machine's own
		}
		var args struct {
			fd   int64
			name [4088]byte
		}
		if copy(args.name[:len(args.name)-1], filepath.Join(h.dev, name)); args.name[0] != 0 {
			// EBUSY: it is mounted. ENOENT: it was not known. ENOTTY: Linux before 5.1.
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, control.Fd(), btrfsForgetDev, uintptr(unsafe.Pointer(&args)))
		}
	}
}

// btrfsDisks is how many disks the btrfs mounted at path has.
func btrfsDisks(path string) (uint64, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var info struct {
		greatest, disks uint64
		rest            [1008]byte
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), btrfsFSInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return 0, errno
	}
	return info.disks, nil
}

// checkMounted makes sure that the file system that was mounted is that of its disk alone.
func (h *Host) checkMounted(there Mount, disk *Disk, id volume.ID) error {
	if !there.On(disk) {
		return volume.Errorf(volume.Conflict, "mounting disk %s (%s) of volume %s at %s gave %s; it was unmounted again", disk.Path, disk.Number, id, there.Path, there)
	}
	if there.FSType != "btrfs" {
		return nil
	}
	switch n, err := h.btrfsDisks(there.Path); {
	case err != nil:
		return volume.Errorf(volume.Failed, "disk %s of volume %s was mounted at %s and unmounted again: the kernel does not tell how many disks its btrfs has: %w",
			disk.Path, id, there.Path, err)
	case n != 1:
		return volume.Errorf(volume.Conflict, "mounting disk %s of volume %s at %s gave a btrfs of %d disks; it was unmounted again. "+
			"Another disk of this server has the same UUID: detach it, or change its UUID (btrfstune -u)", disk.Path, id, there.Path, n)
	}
	return nil
}
