package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of Linux, include/uapi/linux/btrfs.h.
const (
	btrfsForgetDev = 0x50009405 // to /dev/btrfs-control; struct btrfs_ioctl_vol_args
	btrfsFSInfo    = 0x8400941F // to a mounted file system; struct btrfs_ioctl_fs_info_args
)

// ForgetBtrfs makes the kernel forget the btrfs file systems on those devices that are not mounted. udev tells the
// kernel about each btrfs that appears on a disk. Before Linux 6.8 a mount opens every device that the kernel knows
// under the UUID of the file system. A tenant who knows the UUID could add a disk to the file system of another tenant.
// Clones of one image have the same UUID. The mount that follows tells the kernel about its own disk.
func (t *Tools) ForgetBtrfs(ctx context.Context, devices []string) {
	control, err := os.OpenFile(t.ctrl, os.O_RDWR, 0)
	if errors.Is(err, iofs.ErrNotExist) {
		return // nothing has used btrfs yet
	}
	if err != nil {
		t.log.WarnContext(ctx, "the kernel still knows the btrfs of unmounted volumes; before Linux 6.8 it may mix the disks of two tenants",
			"error", err)
		return
	}
	defer control.Close()
	for _, device := range devices {
		var args struct {
			fd   int64
			name [4088]byte
		}
		copy(args.name[:len(args.name)-1], device)
		// EBUSY: it is mounted. ENOENT: the kernel did not know it. ENOTTY: Linux before 5.1.
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, control.Fd(), btrfsForgetDev, uintptr(unsafe.Pointer(&args)))
	}
}

// BtrfsDevices returns how many devices the btrfs mounted at path has.
func BtrfsDevices(path string) (uint64, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var info struct {
		maxID, devices uint64
		rest           [1008]byte
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), btrfsFSInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return 0, errno
	}
	return info.devices, nil
}
