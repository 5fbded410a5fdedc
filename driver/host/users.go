package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// usersTimeout is how long describeUsers has. A loop device whose file is on a dead server does not answer.
const usersTimeout = time.Second

// usersInTime is describeUsers, or what it says if it finds nothing.
func (h *Host) usersInTime(ctx context.Context, d *disk.Disk) string {
	call, _ := h.users.Start(d.Path, func() string { return h.describeUsers(d) })
	if !call.WaitUntil(ctx, usersTimeout) {
		return unknownUsers(d)
	}
	return call.Value
}

// describeUsers says what keeps the file system of a disk alive although this mount namespace does not have it mounted,
// and how to end that. It names what it finds: devices made of the disk, loop devices on its files, processes whose mount
// namespace has it. The driver sees only the processes of its own PID namespace. So it says what else there may be.
func (h *Host) describeUsers(d *disk.Disk) string {
	if holders := d.Holders(); len(holders) > 0 {
		return "the devices " + strings.Join(holders, ", ") + " were made of it"
	}
	if loops := h.kernel.loops(d.Number); len(loops) > 0 {
		return "loop devices use files on it: " + strings.Join(loops, ", ") + ". If no container needs them, detach them as root on the server (losetup --detach)"
	}
	if pids := h.mountedBy(d.Number); len(pids) > 0 {
		return "another mount namespace has it mounted: it is held by PID " + strings.Join(pids, ", ") + ". End that process"
	}
	return unknownUsers(d)
}

func unknownUsers(d *disk.Disk) string {
	return fmt.Sprintf("either another mount namespace has it mounted, or a process has a file open, or the file system is frozen. As root on the server, "+
		"`grep -e ' %s ' -e ' /dev/%s ' /proc/[0-9]*/mountinfo` shows the first. If it shows nothing, thaw the file system: "+
		"`mount /dev/%s /mnt && fsfreeze --unfreeze /mnt; umount /mnt` (%s)", d.Number, d.Name, d.Name, pages.FreeAStuckVolume)
}

// mountedBy lists processes whose mount namespace has a mount of the device.
func (h *Host) mountedBy(device disk.Number) (pids []string) {
	const limit = 8
	files, _ := filepath.Glob(filepath.Join(h.proc, "[0-9]*", "mountinfo"))
	for _, file := range files {
		table, _ := mount.Read(file) // of a process that has ended: none
		if slices.ContainsFunc(table, func(e mount.Entry) bool { return e.Device == device }) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
		if len(pids) == limit {
			break
		}
	}
	return pids
}

// loopsOn lists the loop devices whose backing file is on the device, with the file. The names of files in sysfs do not
// tell the file system, so it asks each loop device (Linux, drivers/block/loop.c, LOOP_GET_STATUS64).
func loopsOn(sys, dev string, device disk.Number) (loops []string) {
	files, _ := filepath.Glob(filepath.Join(sys, "block", "loop*", "loop", "backing_file"))
	for _, file := range files {
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		fd, err := unix.Open(filepath.Join(dev, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		status, err := unix.IoctlLoopGetStatus64(fd)
		_ = unix.Close(fd)
		if err != nil || disk.NumberOf(status.Device) != device {
			continue
		}
		backing, _ := os.ReadFile(file)
		loops = append(loops, fmt.Sprintf("%s on %q", name, strings.TrimSpace(string(backing))))
	}
	return loops
}

// isLast reports whether path is the only mount point of its file system in this mount namespace.
func isLast(table mount.Table, path string) bool {
	here, ok := table.At(path)
	return ok && !slices.ContainsFunc(table, func(e mount.Entry) bool { return e.Device == here.Device && e.Path != path })
}

// thaw ends the freeze of the file system mounted at path (ioctl_fs FITHAW); false if it is not frozen. It may block
// while the disk does not answer.
func thaw(path string) (bool, error) {
	const thawRequest = 0xC0045878 // FITHAW
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), thawRequest, 0)
	switch {
	case errno == 0:
		return true, nil
	case errors.Is(errno, unix.EINVAL), errors.Is(errno, unix.ENOTTY), errors.Is(errno, unix.EOPNOTSUPP):
		return false, nil
	}
	return false, errno
}
