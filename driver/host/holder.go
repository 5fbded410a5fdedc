package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// How long a disk may still be held after its last mount went: the kernel ends a file system a moment later where a process
// elsewhere was the last in it, and tools as fsck hold a disk while they look at it.
const (
	holdLimit = 2 * time.Second
	holdPause = 100 * time.Millisecond
)

// checkLetGo is Busy while something that this mount namespace does not show holds the file system of a volume: a mount of another
// namespace, which may have data to write yet, or a device that was made of the disk. What holds a disk without a file system of ours is none of
// its business: a raw block volume may be a part of what the server's own LVM has found.
func (h *Host) checkLetGo(ctx context.Context, id volume.ID, disk *Disk) error {
	held, err := h.isHeld(ctx, disk)
	if err != nil || !held {
		return err
	}
	const what = "volume %s is not staged here any more, and disk %s is still mounted or held elsewhere: %s"
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	q, _ := h.looking.put(disk.Path, func() bool { return h.holdsFileSystem(disk.Path, disk.Number) })
	select {
	case <-ctx.Done():
		return ended(ctx, what+"; whether a file system is on it is not known, since it has not answered", id, disk.Path, h.holders(disk))
	case <-q.answered:
		if !q.answer {
			return nil
		}
	}
	return volume.Errorf(volume.Busy, what, id, disk.Path, h.holders(disk))
}

// isHeld asks the kernel whether anybody has the disk for itself, as every mounted file system has.
func (h *Host) isHeld(ctx context.Context, disk *Disk) (bool, error) {
	for end := time.Now().Add(holdLimit); ; {
		err := h.openAlone(disk.Path)
		if !errors.Is(err, unix.EBUSY) {
			return false, nil // nobody has it; or it went away, and nobody can have it any more
		}
		if time.Now().After(end) {
			return true, nil
		}
		if !sleep(ctx, holdPause) {
			return true, ended(ctx, "disk %s is still held", disk.Path)
		}
	}
}

// openAlone opens a block device for itself, and closes it.
func openAlone(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// holdsFileSystem reports whether the disk begins as one of our file systems does. A disk that cannot be read holds none: it is dead,
// and must be let go.
func (h *Host) holdsFileSystem(path string, number Number) bool {
	d, err := h.openDevice(path)
	if err != nil {
		return false
	}
	defer d.Close()
	if d.Number() != number {
		return false
	}
	for _, kind := range superblocks {
		super := make([]byte, superSize)
		if _, err := d.ReadAt(super, kind.at); err != nil {
			h.log.Warn("a disk that is held elsewhere cannot be read, so it is let go", "disk", path, "error", err)
			return false
		}
		if kind.is(super) {
			return true
		}
	}
	return false
}

// holders names the devices that were made of the disk, or says how to find what else it may be.
func (h *Host) holders(disk *Disk) string {
	entries, err := os.ReadDir(filepath.Join(h.sys, "block", disk.Name, "holders"))
	if err != nil || len(entries) == 0 {
		return fmt.Sprintf("by another mount namespace, of a container or a service of the server; as root there, "+
			"`grep -e ' %s ' -e ' /dev/%s ' /proc/*/mountinfo` shows whose", disk.Number, disk.Name)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if mapped := h.attribute(name, filepath.Join("dm", "name")); mapped != "" {
			name += " (" + mapped + ")"
		}
		names = append(names, name)
	}
	return "by " + strings.Join(names, ", ") + ", made of it"
}
