package host

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ExpandSpec asks that a staged or published volume uses at least Size (CSI specification, "NodeExpandVolume").
type ExpandSpec struct {
	Volume volume.ID
	Path   string // where it is staged or published
	Size   volume.Size
	// Block is true if the volume is used as a block device. Then Expand only waits for the size of the disk and
	// ignores Path. kubelet names the empty staging directory while the volume is not published yet.
	Block bool
}

// firstMount is the first writable mount of the whole file system, as a rule the one at the staging path. A program that grows the file system there
// and waits keeps no pod's mount from being unmounted.
func firstMount(table mount.Table, d *disk.Disk, mounted mount.Entry) mount.Entry {
	for _, e := range table {
		if e.On(d.Number) && e.Root == mounted.Root && !e.ReadOnly() {
			return e
		}
	}
	return mounted
}

// Expand waits until the disk of the volume has the requested size, grows the file system on it, and returns the size
// of the disk.
//
// Errors, besides those of disk.Finder.Find: NotFound if nothing is mounted at Path, so that the file system of the
// machine is never grown. Conflict if something else is. DeadlineExceeded if the disk does not grow. Failed if the file
// system does not. Unavailable if it takes no writes.
func (h *Host) Expand(ctx context.Context, e ExpandSpec) (volume.Size, error) {
	path, err := mount.ResolveVolume(e.Path)
	if err != nil {
		return 0, err
	}
	d, err := h.disks.Find(ctx, e.Volume)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if e.Block {
		return d.AwaitSize(ctx, e.Volume, e.Size)
	}
	table, err := h.mounts.Table()
	if err != nil {
		return 0, err
	}
	mounted, ok := table.At(path)
	if !ok {
		return 0, volume.Errorf(volume.NotFound, "expand volume %s: it is not mounted at %s", e.Volume, path).Cause(cause.MountNotStaged)
	}
	fileSystem := mounted.On(d.Number)
	if fileSystem {
		err = h.checkDisk("expand", e.Volume, mounted, d, unstageFirst)
	} else {
		err = checkBlockTarget(e.Volume, mounted, d)
	}
	if err != nil {
		return 0, err
	}
	size, err := d.AwaitSize(ctx, e.Volume, e.Size)
	if err != nil || !fileSystem {
		return size, err
	}
	if mounted.ReadOnly() {
		return 0, volume.Errorf(volume.Conflict, "expand volume %s: it is mounted read-only at %s, so its file system cannot be grown", e.Volume, path).Cause(cause.MountDiffers)
	}
	if err := h.grow(ctx, e.Volume, firstMount(table, d, mounted), d); err != nil {
		return 0, err
	}
	return size, nil
}
