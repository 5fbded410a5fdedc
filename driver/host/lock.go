package host

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// lockPoll is how often the driver tries to lock a disk that another process has locked. udev has it locked for some milliseconds after each change.
const lockPoll = 100 * time.Millisecond

// lock locks a disk while the driver checks, formats and mounts it. Package node locks volumes in memory only, so a second driver on this server would not
// see that. The lock is the BSD lock of the device node, which ends with its process. udev does not read a disk while another program has that lock
// (systemd, "Locking Block Device Access").
func (h *Host) lock(ctx context.Context, id volume.ID, d *disk.Disk) (unlock func(), err error) {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "locking disk "+d.Path)()
	for {
		unlock, err := h.kernel.lock(d.Path)
		switch {
		case err == nil:
			return unlock, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, volume.Errorf(volume.Failed, "stage volume %s: lock disk %s: %w", id, d.Path, err).Cause(cause.NodeSystem)
		case volume.Sleep(ctx, lockPoll) != nil:
			return nil, volume.Interrupted(ctx, "stage volume %s: another process has locked disk %s, as a driver does that formats it; "+
				"fuser -v %s on the server shows which", id, d.Path, d.Path).Cause(cause.DiskInUse)
		}
	}
}

// lockNode locks a device node, or returns EWOULDBLOCK.
func lockNode(path string) (unlock func(), err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return func() { _ = unix.Close(fd) }, nil
}
