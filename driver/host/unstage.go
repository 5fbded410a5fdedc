package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Unstage thaws and writes out the file system at the staging path and unmounts it, as Unpublish does. Error: Busy while
// the volume is in use anywhere else, so that its disk is not detached under a mount. A mount in another mount namespace
// counts too.
func (h *Host) Unstage(ctx context.Context, id volume.ID, path string) error {
	sync := func(path string) error { return h.sync(ctx, id, path) }
	if err := h.unmount(path, sync); err != nil || disk.CheckID(id) != nil {
		return err
	}
	d, err := h.disks.FindCached(ctx, id) // a disk that does not answer now does not delay it
	if d == nil || err != nil {
		return h.checkOthers(id) // there is no disk that is surely the one of this volume
	}
	defer d.Close()
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	if paths := table.PathsInUse(d.Number, d.Path); len(paths) > 0 {
		return volume.Errorf(volume.Busy, "unstage volume %s: it is unmounted from the staging path, but disk %s is still in use at %s. "+
			"Unpublish it there, and unmount by hand what Kubernetes does not know", id, d.Path, firstPaths(paths)).Cause(cause.DiskInUse)
	}
	return h.checkReleased(ctx, id, d)
}

// checkOthers returns Unavailable while a disk is in use here that may be the one of the volume. It has not reported its serial since the driver started,
// or cannot be opened. Without a mount it may go.
func (h *Host) checkOthers(id volume.ID) error {
	disks, err := h.disks.MayBe(id)
	if err != nil {
		return err
	}
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	for _, d := range disks {
		if paths := table.PathsInUse(d.Number, d.Path); len(paths) > 0 {
			return volume.Errorf(volume.Unavailable, "unstage volume %s: it is unmounted from the staging path, but disk %s (%s) may be its disk, and is in use at %s. "+
				"The driver tries again when kubelet retries", id, d.Path, d.Serial, firstPaths(paths)).Cause(cause.DiskInUse)
		}
	}
	return nil
}

// firstPaths keeps a list of paths from filling a message.
func firstPaths(paths []string) string {
	const limit = 8
	if len(paths) <= limit {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more paths", strings.Join(paths[:limit], ", "), len(paths)-limit)
}

// Unpublish removes every mount at path and the empty directory or file under it; see mount.Mounts. It writes out a block volume first.
// The kernel does that only when the last program closes the disk, and one of the server may have it open.
func (h *Host) Unpublish(ctx context.Context, path string) error {
	return h.unmount(path, func(path string) error {
		table, err := h.mounts.Table()
		if err != nil {
			return err
		}
		published, _ := table.At(path)
		node := h.boundNode(published)
		if node == "" || published.ReadOnly() {
			return nil
		}
		return h.writeOut(ctx, "the block volume at "+path, node, func() error { return h.kernel.syncDisk(node) })
	})
}

func (h *Host) unmount(path string, before func(path string) error) error {
	if err := h.mounts.Unmount(path, before); err != nil {
		return err
	}
	h.warnings.Delete(path)
	return nil
}

// sync writes out the file system mounted at path. umount(2) does that only for the last mount of a file system, and
// another mount namespace may have one that this one does not show. If the disk answers with errors, unmounting
// continues, since a dead disk must be unstaged too. If it does not answer, sync waits until shortly before ctx ends,
// and the mount stays. A mount with a call in progress cannot be unmounted.
func (h *Host) sync(ctx context.Context, id volume.ID, path string) error {
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	mounted, _ := table.At(path)
	err = h.writeOut(ctx, "the file system at "+path, h.nodeBelow(mounted), func() error {
		h.thawLast(path)
		return h.kernel.sync(path)
	})
	if err != nil {
		return err
	}
	return h.awaitWriters(ctx, id)
}

// writeOut runs sync for what is to be unmounted. It begins only if the disk answers a read and no earlier write is in progress there.
// A thread that waits for a write does not end before the disk answers, and keeps the process from ending.
func (h *Host) writeOut(ctx context.Context, what, node string, sync func() error) error {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "writing out "+what)()
	if err := h.readDisk(ctx, node); volume.Is(err, volume.Unavailable) {
		if ctx.Err() != nil {
			return volume.Interrupted(ctx, "unmount %s: %v. The driver has not unmounted it, since the last writes would be lost", what, err).Cause(cause.DiskSilent)
		}
		return volume.Errorf(volume.Unavailable, "unmount %s: %w. The driver has not unmounted it, since the last writes would be lost", what, err).Cause(cause.DiskSilent)
	}
	for fresh := false; !fresh; { // one that began earlier may lack the last writes
		var call *singleflight.Call[struct{}]
		call, fresh = h.syncs.Start(cmp.Or(node, what), func() struct{} {
			if err := sync(); err != nil {
				h.log.Warn("a volume could not be written out before it is unmounted; its disk may be dead, and then the last writes are lost", "what", what, "error", err)
			}
			return struct{}{}
		})
		if !call.Wait(ctx) {
			return volume.Interrupted(ctx, "unmount: the driver has been writing out %s since %s and has not unmounted it yet. If this never ends, its disk does not answer",
				what, call.Started.Format(time.RFC3339)).Cause(cause.DiskSilent)
		}
	}
	return nil
}

// thawLast thaws the file system at path if nothing else here has it mounted. A backup hook freezes a file system by
// fsfreeze. If its pod ends before it thaws the file system, the superblock lives on without any mount, and keeps the
// disk in use. Nobody can thaw it then without mounting it again.
func (h *Host) thawLast(path string) {
	table, err := h.mounts.Table()
	if err != nil || !isLast(table, path) {
		return
	}
	switch thawed, err := h.kernel.thaw(path); {
	case err != nil:
		h.log.Warn("the driver cannot thaw the file system before it is unmounted", "path", path, "error", err)
	case thawed:
		h.log.Warn("a file system was frozen (fsfreeze) and no pod of this node uses it any more; the driver thawed it before the last unmount", "path", path)
	}
}

// How long a disk may stay in use after its last mount was removed. If a process elsewhere was the last to use a file
// system, the kernel shuts it down a moment later. Programs such as fsck use a disk while they read it.
const (
	releaseTimeout = 2 * time.Second
	releasePoll    = 100 * time.Millisecond
)

// checkReleased returns Busy while something that this mount namespace does not show uses the file system of a volume.
// That is a mount in another namespace, which may still have data to write, or a device that was made of the disk. It
// ignores users of a disk without a supported file system: the LVM of the server may have found a raw block volume.
func (h *Host) checkReleased(ctx context.Context, id volume.ID, d *disk.Disk) error {
	inUse, err := h.awaitRelease(ctx, d)
	if err != nil || !inUse {
		return err
	}
	const message = "unstage volume %s: it is unmounted here, but disk %s is still mounted or in use elsewhere: %s"
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	call, _ := h.holders.Start(d.Path, func() bool { return h.hasFileSystem(d.Name, d.Path, d.Number) })
	if !call.Wait(ctx) {
		return volume.Interrupted(ctx, message+"; the disk does not answer, so the driver does not know whether it holds a file system", id, d.Path, unknownUsers(d)).Cause(cause.DiskSilent)
	}
	if !call.Value {
		return nil
	}
	return volume.Errorf(volume.Busy, message, id, d.Path, h.usersInTime(ctx, d)).Cause(cause.DiskInUse)
}

// awaitRelease waits a short time until nothing uses the disk exclusively, as every mounted file system does. It
// reports whether the disk is still in use.
func (h *Host) awaitRelease(ctx context.Context, d *disk.Disk) (bool, error) {
	defer volume.BeginStep(ctx, "waiting until nothing uses disk "+d.Path)()
	for end := time.Now().Add(releaseTimeout); ; {
		if !h.kernel.inUse(d.Path) {
			return false, nil // or the disk is gone, and nothing can use it
		}
		if time.Now().After(end) {
			return true, nil
		}
		if volume.Sleep(ctx, releasePoll) != nil {
			return true, volume.Interrupted(ctx, "unstage: disk %s is still in use", d.Path).Cause(cause.DiskInUse)
		}
	}
}

// hasFileSystem reports whether the disk holds a supported file system. A disk that cannot be read counts as holding
// none: it is dead, and the volume must be unstaged.
func (h *Host) hasFileSystem(name, path string, number disk.Number) bool {
	device, err := h.disks.Open(name)
	if err != nil {
		return false
	}
	defer device.Close()
	if device.Number() != number {
		return false
	}
	found, err := fs.HasFileSystem(device)
	if err != nil {
		h.log.Warn("a disk that is in use elsewhere cannot be read, so the driver lets it be detached", "disk", path, "error", err)
	}
	return found
}
