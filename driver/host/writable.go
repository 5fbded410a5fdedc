package host

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// A mount that is writable may refuse every write. The kernel made the file system read-only after an error or shut it down, or its disk is
// write-protected. Or a write waits: the file system is frozen, or the disk does not answer. Stage, publish and expand ask takesWrites before they
// hand a mount to a pod or start a program that writes. Statistics and health ask readOnlyByKernel, the part of it that sends no request.

// readOnlyByKernel says why the file system of a writable mount refuses writes, as far as the mount table and sysfs show it. It is empty if they show
// nothing. The disk is named as in sysfs.
//
// The kernel does not always show it. ext4 shows ro before Linux 6.12, emergency_ro from 6.14 on, and nothing between. XFS that shut down shows
// nothing. btrfs shows ro.
func (h *Host) readOnlyByKernel(e mount.Entry, disk string) string {
	switch {
	case e.ReadOnlyAfterError():
		return "the kernel made the file system read-only after an error; see the kernel log"
	case !e.ReadOnly() && h.disks.Attribute(disk, "ro") == "1":
		return "its disk is write-protected"
	}
	return ""
}

// stopPods is the remedy for a file system that takes no writes.
const stopPods = "Stop the pods that use it on this node: the driver checks it when it is staged again"

// answerTime is how long a disk has to answer once the time of the caller is over. It fits into the margin of volume.BeforeDeadline.
const answerTime = 200 * time.Millisecond

// takesWrites is nil if a write to the file system of the volume that is mounted as e goes through. verb names the operation in the error.
//
// Error: Unavailable if no write goes through, so that the caller retries and kubelet unstages the volume once its pods are gone. DeadlineExceeded or
// Canceled if ctx ended before the answer.
func (h *Host) takesWrites(ctx context.Context, verb string, id volume.ID, e mount.Entry, d *disk.Disk) error {
	what := verb + " volume " + string(id)
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	if why := h.readOnlyByKernel(e, d.Name); why != "" {
		return refusesWrites(what, e, d, errors.New(why))
	}
	if err := h.answers(ctx, what, d); err != nil {
		return err
	}
	defer volume.BeginStep(ctx, "writing to the file system at "+e.Path)()
	call, _ := h.writes.Start(id, func() error { return h.kernel.write(e.Path) })
	if !call.WaitUntil(ctx, readTimeout) {
		return h.waitsForWrite(ctx, what, e.Path, d, call.Started)
	}
	if err := call.Value; err != nil {
		return refusesWrites(what, e, d, err)
	}
	return nil
}

func refusesWrites(what string, e mount.Entry, d *disk.Disk, why error) error {
	return volume.Errorf(volume.Unavailable, "%s: the %s file system at %s on disk %s takes no writes: %w. %s", what, e.FSType, e.Path, d.Path, why, stopPods).Cause(cause.FsReadOnly)
}

// waitsForWrite is the error for a file system in which a write has waited since then. If its disk answers, it is frozen. The kernel does not record
// by which program. No device mapper can be between them that is suspended instead: the file system is mounted from the disk itself.
func (h *Host) waitsForWrite(ctx context.Context, what, path string, d *disk.Disk, since time.Time) error {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	why := "its disk does not answer; its backend may be down (" + pages.StorageDoesNotAnswer.String() + ")"
	if err := h.readDisk(asked, d.Path); !volume.Is(err, volume.Unavailable) {
		why = "its disk answers, so it is frozen (fsfreeze), by a backup hook or by hand. The kernel does not record by whom. " +
			"Thaw it as root on the server (fsfreeze --unfreeze), or delete the pods: the driver thaws it before the last unmount"
	}
	const message = "%s: a write to the file system at %s on disk %s has waited since %s: %s"
	if ctx.Err() != nil {
		return volume.Interrupted(ctx, message, what, path, d.Path, since.Format(time.RFC3339), why).Cause(cause.FsReadOnly)
	}
	return volume.Errorf(volume.Unavailable, message, what, path, d.Path, since.Format(time.RFC3339), why).Cause(cause.FsReadOnly)
}

// writeNothing makes a file without a name on the file system mounted at path, and drops it. It fails where every write fails, and waits where every
// write waits, for as long as the file system is frozen. A file system that is full, has no such files, or allows none in this directory is not broken. A
// pod may have made its root immutable.
func writeNothing(path string) error {
	fd, err := unix.Open(path, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return nil
	}
	return err
}
