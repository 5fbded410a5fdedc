package host

import (
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// grow makes the file system that is mounted as e as large as its disk.
//
// A program that grows a frozen file system waits in the kernel, and no signal ends it. So grow first tries whether a write goes through. The program
// runs beside the caller, once for each volume. If it waits all the same, grow returns before the deadline, and the caller may unlock the volume.
// NodeUnstageVolume then thaws the file system.
func (h *Host) grow(ctx context.Context, id volume.ID, e mount.Entry, d *disk.Disk) error {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	if err := h.takesWrites(ctx, "grow", id, e, d); err != nil {
		return err
	}
	for fresh := false; !fresh; { // one that began earlier may have grown it to an earlier size of the disk
		var call *singleflight.Call[error]
		call, fresh = h.grows.Start(id, func() error { return h.runGrow(ctx, id, e) })
		if !call.Wait(ctx) {
			return h.waitsForWrite(ctx, "grow volume "+string(id), e.Path, d, call.Started)
		}
		if fresh {
			return call.Value
		}
	}
	return nil
}

// runGrow outlives its caller, so it opens the disk itself.
func (h *Host) runGrow(ctx context.Context, id volume.ID, e mount.Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // for the serial; the program itself has no limit
	defer cancel()
	d, err := h.disks.Find(ctx, id)
	if err != nil {
		return err
	}
	defer d.Close()
	return h.fs.Grow(ctx, d, e.FSType, e.Path)
}

// awaitWriters waits for the driver's own writers of a file system that is to be unmounted. They are the program that grows it, and the write that
// takesWrites tried. They hold the mount. Once the file system is thawed they end by themselves.
func (h *Host) awaitWriters(ctx context.Context, id volume.ID) error {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	if write, running := h.writes.Running(id); running && !write.Wait(ctx) {
		return volume.Interrupted(ctx, "unmount volume %s: a write of the driver has waited since %s", id, write.Started.Format(time.RFC3339)).Cause(cause.DiskSilent)
	}
	if call, running := h.grows.Running(id); running && !call.Wait(ctx) {
		return volume.Interrupted(ctx, "unmount volume %s: the driver has been growing its file system since %s", id, call.Started.Format(time.RFC3339)).Cause(cause.DiskSilent)
	}
	return nil
}
