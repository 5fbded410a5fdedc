package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Publication is a volume at a place where a pod sees it.
type Publication struct {
	Volume   volume.ID
	Staging  string // where it is staged; not looked at for a block volume
	Target   string // a directory, or a file for a block volume
	ReadOnly bool
	// ByMode says that it is read-only by its access mode alone, which upstream's plugin does not look at: a writable publication that is
	// there already, of before a swap, serves too. Looked at only with ReadOnly.
	ByMode bool
	// Alone says that the access mode allows no second target on this machine.
	Alone bool
}

// Publish shows a staged file system at the target too. It does nothing if that is so.
//
// Errors: NotFound when the volume's disk is gone; Conflict when staging holds nothing or another disk, something else is
// mounted at the target, or the volume is at another target and may not be; Incompatible when it is there with the other writability.
func (h *Host) Publish(ctx context.Context, p Publication) error {
	id, readOnly := p.Volume, p.ReadOnly
	staging, err := resolve(p.Staging)
	if err != nil {
		return err
	}
	target, err := resolve(p.Target)
	if err != nil {
		return err
	}
	disk, err := h.Find(ctx, id)
	if err != nil {
		return err
	}
	defer disk.Close()
	table, err := h.mounts()
	if err != nil {
		return err
	}
	source, ok := table.At(staging)
	switch {
	case !ok:
		return volume.Errorf(volume.Conflict, "volume %s is not staged: nothing is mounted at %s", id, staging)
	case !source.On(disk):
		return volume.Errorf(volume.Conflict, "%s is mounted at %s, but volume %s is disk %s (%s)", source, staging, id, disk.Path, disk.Number)
	}
	readOnly = readOnly || source.ReadOnly()
	if there, ok := table.At(target); ok {
		return h.acceptPublished(p, there, source, readOnly)
	}
	if err := h.checkAlone(table, disk, p, staging, target); err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return volume.Errorf(volume.Failed, "make the target directory: %w", err)
	}
	if err := h.confirm(ctx, disk); err != nil {
		return err
	}
	return h.mounter.Bind(staging, target, readOnly)
}

func (h *Host) acceptPublished(p Publication, there, source Mount, readOnly bool) error {
	if there.Device != source.Device || there.Root != source.Root {
		return volume.Errorf(volume.Conflict, "%s is mounted at %s instead of volume %s; unpublish the path first", there, there.Path, p.Volume)
	}
	return h.acceptWritability(p, there, readOnly)
}

func (h *Host) acceptWritability(p Publication, there Mount, readOnly bool) error {
	switch {
	case there.ReadOnly() == readOnly:
		return nil
	case !there.ReadOnly() && p.ReadOnly && p.ByMode:
		if _, said := h.lenient.LoadOrStore(there.Path, nil); !said {
			h.log.Warn("a volume that only readers may use was published writable, as upstream's plugin does; it stays so until its pod ends, and is read-only for the next one",
				"volume", p.Volume, "path", there.Path)
		}
		return nil
	case !there.ReadOnly(): // the driver was killed between the two steps of a read-only bind, or the caller wants something else now
		if finished, err := h.mounter.FinishReadOnly(there.Path); finished || err != nil {
			return err
		}
	}
	return volume.Errorf(volume.Incompatible, "volume %s is published at %s, read-only %t; asked for is read-only %t", p.Volume, there.Path, there.ReadOnly(), readOnly)
}

// PublishBlock shows a volume's device node at the target, a file. It does nothing if that is so. ReadOnly marks the mount; that
// nobody writes to the device is seen to by the container runtime, which kubelet tells.
func (h *Host) PublishBlock(ctx context.Context, p Publication) error {
	id, readOnly := p.Volume, p.ReadOnly
	target, err := resolve(p.Target)
	if err != nil {
		return err
	}
	disk, err := h.Await(ctx, id)
	if err != nil {
		return err
	}
	defer disk.Close()
	table, err := h.mounts()
	if err != nil {
		return err
	}
	if there, ok := table.At(target); ok {
		if err := checkNode(id, there, disk); err != nil {
			return err
		}
		return h.acceptWritability(p, there, readOnly)
	}
	if err := h.checkAlone(table, disk, p, "", target); err != nil {
		return err
	}
	node, err := filepath.EvalSymlinks(disk.Path)
	if err != nil {
		return volume.Errorf(volume.Failed, "resolve the device node of volume %s: %w", id, err)
	}
	if err := makeFile(target); err != nil {
		return err
	}
	if err := h.confirm(ctx, disk); err != nil {
		return err
	}
	if err := h.mounter.Bind(node, target, readOnly); err != nil {
		return err
	}
	table, err = h.mounts()
	if err != nil {
		return err
	}
	there, ok := table.At(target)
	if !ok {
		return volume.Errorf(volume.Failed, "device %s was bound at %s, and the mount table does not show it", node, target)
	}
	if err := checkNode(id, there, disk); err != nil {
		return err
	}
	if there.ReadOnly() != readOnly {
		return volume.Errorf(volume.Failed, "device %s was bound at %s, and the mount table shows it with read-only %t, not %t", node, target, there.ReadOnly(), readOnly)
	}
	return nil
}

// checkNode refuses a block volume's target where something else is mounted.
func checkNode(id volume.ID, there Mount, disk *Disk) error {
	if isNode(there.Path, disk.Number) {
		return nil
	}
	return volume.Errorf(volume.Conflict, "%s is mounted at %s and is not disk %s (%s) of volume %s; unpublish the path first",
		there, there.Path, disk.Path, disk.Number, id)
}

// makeFile makes an empty file to bind a device node over. What is there already must be an empty file too.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return volume.Errorf(volume.Failed, "make the target's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return volume.Errorf(volume.Failed, "make the target file: %w", err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() != 0 {
		return volume.Errorf(volume.Conflict, "%s exists and is not an empty file; it is not used as a block volume's target", path)
	}
	return nil
}
