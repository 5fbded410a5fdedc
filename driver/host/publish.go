package host

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// PublishSpec says how a volume is published to a pod (CSI specification, "NodePublishVolume").
type PublishSpec struct {
	Volume   volume.ID
	Staging  string // where it is staged; ignored for a block volume
	Target   string // a directory, or a file for a block volume
	ReadOnly bool
	// ReadOnlyByMode is true if only the access mode makes it read-only. Upstream's plugin ignores the mode, so a
	// writable publication that was made before a swap is accepted. It counts only with ReadOnly.
	ReadOnlyByMode bool
	// SingleTarget is true if the access mode allows no second target on this machine.
	SingleTarget bool
}

// Publish binds a staged file system at the target. It does nothing if it is bound already.
//
// Errors: NotFound if the volume has no disk here. Conflict if nothing or another disk is staged, something else is
// mounted at the target, or the volume has another target and allows only one. Incompatible if it is published there
// with the other writability. Unavailable if the file system takes no writes, or for a reader cannot be read.
func (h *Host) Publish(ctx context.Context, p PublishSpec) error {
	staging, err := mount.Resolve(p.Staging)
	if err != nil {
		return err
	}
	target, err := mount.Resolve(p.Target)
	if err != nil {
		return err
	}
	d, err := h.disks.Find(ctx, p.Volume)
	if err != nil {
		return err
	}
	defer d.Close()
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	staged, ok := table.At(staging)
	if !ok {
		return volume.Errorf(volume.Conflict, "publish volume %s: it is not staged: nothing is mounted at %s", p.Volume, staging).Cause(cause.MountNotStaged)
	}
	if err := h.checkDisk("publish", p.Volume, staged, d, unstageFirst); err != nil {
		return err
	}
	readOnly := p.ReadOnly || staged.ReadOnly()
	if err := h.checkUsable(ctx, p, staged, d, readOnly); err != nil {
		return err
	}
	if published, ok := table.At(target); ok {
		if published.Device != staged.Device || published.Root != staged.Root {
			return volume.Errorf(volume.Conflict, "publish volume %s: %s is mounted at %s; unpublish the path first", p.Volume, published, published.Path).Cause(cause.DiskPath)
		}
		return h.checkWritability(p, published, readOnly)
	}
	if err := p.checkSingleTarget(table.PathsInUse(d.Number, d.Path), staging, target); err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return volume.Errorf(volume.Failed, "make the target directory: %w", err).Cause(cause.NodeSystem)
	}
	if err := d.Verify(ctx); err != nil {
		return err
	}
	if err := h.mounts.Bind(staging, target, readOnly); err != nil {
		return err
	}
	return h.checkBound(p.Volume, staging, target, readOnly, func(published mount.Entry) error {
		if published.Device != staged.Device || published.Root != staged.Root {
			return volume.Errorf(volume.Conflict, "publish volume %s: after the bind of %s the mount table shows %s at %s; unpublish the path first",
				p.Volume, staging, published, target).Cause(cause.DiskPath)
		}
		return nil
	})
}

// checkUsable returns Unavailable if a pod could not use the staged file system. kubelet then retries, and unstages it once no pod needs it.
func (h *Host) checkUsable(ctx context.Context, p PublishSpec, staged mount.Entry, d *disk.Disk, readOnly bool) error {
	if !readOnly {
		return h.takesWrites(ctx, "publish", p.Volume, staged, d)
	}
	if _, err := h.Stats(ctx, staged.Path); err != nil { // a reader is served for as long as the file system can be read
		return volume.Errorf(volume.Unavailable, "publish volume %s: %w. %s", p.Volume, err, stopPods).Cause(cause.DiskSilent)
	}
	return nil
}

// checkSingleTarget returns Conflict if the access mode allows one target and there is another one.
func (p PublishSpec) checkSingleTarget(inUse []string, staging, target string) error {
	if !p.SingleTarget {
		return nil
	}
	for _, path := range inUse {
		// kubelet stages at .../globalmount; the staging path of an older kubelet differs in what comes before.
		if path != staging && path != target && filepath.Base(path) != "globalmount" {
			return volume.Errorf(volume.Conflict, "publish volume %s: it is published at %s, and its access mode allows one target; unpublish it there first", p.Volume, path).Cause(cause.MountSingle)
		}
	}
	return nil
}

func (h *Host) checkWritability(p PublishSpec, published mount.Entry, readOnly bool) error {
	switch {
	case published.ReadOnly() == readOnly:
		return nil
	case !published.ReadOnly() && p.ReadOnly && p.ReadOnlyByMode:
		if _, logged := h.warnings.LoadOrStore(p.Target, nil); !logged {
			h.log.Warn("upstream's plugin published a volume writable although its access mode allows only readers. "+
				"It stays writable until its pod ends; the driver publishes it read-only to the next pod",
				"volume", p.Volume, "path", published.Path)
		}
		return nil
	case !published.ReadOnly(): // the driver was killed between the two steps of a read-only bind, or the caller asks for something else now
		if finished, err := h.mounts.FinishReadOnly(published.Path); finished || err != nil {
			return err
		}
	}
	return volume.Errorf(volume.Incompatible, "volume %s is published at %s with read-only %t, and the request has read-only %t",
		p.Volume, published.Path, published.ReadOnly(), readOnly).Cause(cause.MountDiffers)
}

// PublishBlock binds the device node of a volume at the target, a file. It does nothing if it is bound already.
// ReadOnly applies to the mount; kubelet tells the container runtime to open the device read-only.
func (h *Host) PublishBlock(ctx context.Context, p PublishSpec) error {
	target, err := mount.Resolve(p.Target)
	if err != nil {
		return err
	}
	d, err := h.disks.Await(ctx, p.Volume)
	if err != nil {
		return err
	}
	defer d.Close()
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	if published, ok := table.At(target); ok {
		if err := checkBlockTarget(p.Volume, published, d); err != nil {
			return err
		}
		return h.checkWritability(p, published, p.ReadOnly)
	}
	if err := p.checkSingleTarget(table.PathsInUse(d.Number, d.Path), "", target); err != nil {
		return err
	}
	node, err := filepath.EvalSymlinks(d.Path)
	if err != nil {
		return volume.Errorf(volume.Failed, "publish volume %s: resolve its device node: %w", p.Volume, err).Cause(cause.NodeSystem)
	}
	if err := makeTargetFile(target); err != nil {
		return err
	}
	if err := d.Verify(ctx); err != nil {
		return err
	}
	if err := h.mounts.Bind(node, target, p.ReadOnly); err != nil {
		return err
	}
	return h.checkBound(p.Volume, node, target, p.ReadOnly, func(published mount.Entry) error { return checkBlockTarget(p.Volume, published, d) })
}

// checkBound checks that the mount table shows a bind. Without it the pod would write to the disk of the node.
func (h *Host) checkBound(id volume.ID, source, target string, readOnly bool, isIt func(published mount.Entry) error) error {
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	published, ok := table.At(target)
	if !ok {
		return volume.Errorf(volume.Failed, "publish volume %s: the driver bound %s at %s, but the mount table does not show it", id, source, target).Cause(cause.MountFailed)
	}
	if err := isIt(published); err != nil {
		return err
	}
	if published.ReadOnly() != readOnly {
		return volume.Errorf(volume.Failed, "publish volume %s: the driver bound %s at %s with read-only %t, but the mount table shows read-only %t",
			id, source, target, readOnly, published.ReadOnly()).Cause(cause.MountFailed)
	}
	return nil
}

// checkBlockTarget returns Conflict if the mount is not the device node of the disk.
func checkBlockTarget(id volume.ID, published mount.Entry, d *disk.Disk) error {
	if disk.IsNode(published.Path, d.Number) {
		return nil
	}
	return volume.Errorf(volume.Conflict, "volume %s: %s is mounted at %s, and the disk of the volume is %s (%s); unpublish the path first",
		id, published, published.Path, d.Path, d.Number).Cause(cause.DiskPath)
}

// makeTargetFile makes an empty file over which a device node is bound. A file that exists must be empty too.
func makeTargetFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return volume.Errorf(volume.Failed, "make the parent directory of the target: %w", err).Cause(cause.NodeSystem)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, iofs.ErrExist) {
		return volume.Errorf(volume.Failed, "make the target file: %w", err).Cause(cause.NodeSystem)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() != 0 {
		return volume.Errorf(volume.Conflict, "%s exists and is not an empty file; the driver does not bind a block volume there", path).Cause(cause.DiskPath)
	}
	return nil
}
