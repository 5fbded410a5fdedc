package host

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// StageSpec says how a file system volume is staged (CSI specification, "NodeStageVolume").
type StageSpec struct {
	Volume volume.ID
	Path   string // the staging target path
	// FSType is the file system to make and to expect. If it is empty, the driver accepts what is there, or makes
	// DefaultFSType, or ext4 if that is empty too.
	FSType        string
	DefaultFSType string
	Format        contract.Format // used only if a file system is made
	MountFlags    []string
	// ReadOnly mounts read-only, and then nothing is made, repaired or grown.
	ReadOnly bool
	// FromSource is true if CreateVolume made the volume from a snapshot, a volume or a backup: contract.ContextResizeRequired
	// says so. It is also true for the recovered volumes of a lost cluster. Such a volume is never formatted, and its file
	// system is grown to the disk, which may be larger than the source was.
	FromSource bool
}

// Stage mounts the file system of a volume, and makes it first if the disk is empty. It does nothing if the right disk
// is mounted already.
//
// While anything is mounted at the path, Stage marks its errors as after a write, so that kubelet goes on to unstage.
// After a final answer kubelet considers the volume unstaged and lets it be detached under the mount. Only Incompatible
// stays final, as the CSI specification says.
//
// Errors, besides those of disk.Finder.Await: InvalidArgument for an unknown file system, a refused mount flag, or a
// format option that the file system lacks. Incompatible if the volume is staged in another way. Conflict if another
// disk is mounted there or the disk holds another file system. DataLoss if the disk holds anything else or cannot be
// read. Unavailable if the disk has no size yet, or its backend does not answer.
func (h *Host) Stage(ctx context.Context, s StageSpec) (err error) {
	defer func() {
		if err != nil && !volume.Is(err, volume.Incompatible) && h.mayBeMounted(s.Path) {
			err = volume.AfterWrite(err)
		}
	}()
	options, readOnly, err := s.mountOptions()
	if err != nil {
		return err
	}
	path, err := mount.Resolve(s.Path)
	if err != nil {
		return err
	}
	s.Path = path
	d, err := h.disks.Await(ctx, s.Volume)
	if err != nil {
		return err
	}
	defer d.Close()
	table, err := h.mounts.Table()
	if err != nil {
		return err
	}
	staged, isStaged := table.At(s.Path)
	if isStaged { // an earlier call may have been answered before its mount(8) had ended, and then nobody has checked the mount
		err = h.checkDisk("stage", s.Volume, staged, d, unstageFirst)
		if err == nil {
			err = s.checkStaged(staged, readOnly)
		}
		if err == nil {
			err = h.checkContext(staged, s.Volume, options, unstageFirst)
		}
	} else {
		staged = mount.Entry{Path: s.Path}
		staged.FSType, err = h.prepareAndMount(ctx, s, d, readOnly, options)
	}
	switch {
	case err != nil || readOnly:
		return err
	case s.FromSource: // also if it was staged already: an earlier call may have failed to grow it
		return h.grow(ctx, s.Volume, staged, d)
	case isStaged:
		return h.takesWrites(ctx, "stage", s.Volume, staged, d)
	}
	return nil
}

// prepareAndMount has the disk locked, so that no other process formats or checks it.
func (h *Host) prepareAndMount(ctx context.Context, s StageSpec, d *disk.Disk, readOnly bool, options []string) (fsType string, err error) {
	unlock, err := h.lock(ctx, s.Volume, d)
	if err != nil {
		return "", err
	}
	defer unlock()
	table, err := h.mounts.Table() // after the lock: the other process may have mounted it
	if err != nil {
		return "", err
	}
	mounted := len(table.PathsOn(d.Number)) > 0
	fsType, err = h.prepare(ctx, s, d, readOnly, mounted)
	if err != nil {
		return "", err
	}
	return fsType, h.mount(ctx, s.Volume, d, s.Path, fsType, options)
}

// mayBeMounted reports whether anything is mounted at path, or that is unknown.
func (h *Host) mayBeMounted(path string) bool {
	if resolved, err := mount.Resolve(path); err == nil {
		path = resolved
	}
	table, err := h.mounts.Table()
	if err != nil {
		return true
	}
	_, mounted := table.At(path)
	return mounted
}

// mountOptions checks the file system types and parses the mount flags.
func (s StageSpec) mountOptions() (options []string, readOnly bool, err error) {
	options, readOnly, err = contract.ParseMountFlags(s.MountFlags)
	if err != nil {
		return nil, false, volume.Errorf(volume.InvalidArgument, "stage volume %s: %w", s.Volume, err)
	}
	for _, fsType := range []string{s.FSType, s.DefaultFSType} {
		if fsType != "" && !fs.Supported(fsType) {
			return nil, false, volume.Errorf(volume.InvalidArgument, "stage volume %s: file system %.200q is not supported; use one of %s",
				s.Volume, fsType, fs.SupportedTypes()).Cause(cause.FsUnsupported)
		}
	}
	if s.ReadOnly {
		return append(options, "ro"), true, nil
	}
	return options, readOnly, nil
}

// checkStaged checks whether the mount at the staging path is as the caller asked for. A writable mount serves a
// read-only request: each publication is read-only by itself, and upstream's plugin stages like that too.
func (s StageSpec) checkStaged(staged mount.Entry, readOnly bool) error {
	switch {
	case s.FSType != "" && !fs.SameFamily(staged.FSType, s.FSType):
		return volume.Errorf(volume.Incompatible, "volume %s is staged at %s as %s, not %s", s.Volume, staged.Path, staged.FSType, s.FSType).Cause(cause.MountDiffers)
	case staged.ReadOnly() && !readOnly:
		return volume.Errorf(volume.Incompatible, "volume %s is staged read-only at %s, and the request is writable", s.Volume, staged.Path).Cause(cause.MountDiffers)
	}
	return nil
}

// prepare makes sure that a mountable file system is on the disk, and returns its type. It decides by what fs.Probe found
// whether the driver mounts the disk, formats it, or refuses it. mounted is true if the disk is mounted elsewhere.
func (h *Host) prepare(ctx context.Context, s StageSpec, d *disk.Disk, readOnly, mounted bool) (string, error) {
	refuse := func(kind volume.Kind, why cause.ID, format string, args ...any) (string, error) {
		return "", volume.Errorf(kind, "stage volume %s: disk %s "+format, append([]any{s.Volume, d.Path}, args...)...).Cause(why)
	}
	if !readOnly && d.ReadOnly() {
		return refuse(volume.Conflict, cause.MountDiffers, "is write-protected and the request is writable; use the volume read-only, or attach it writable")
	}
	if err := h.answers(ctx, "stage volume "+string(s.Volume), d); err != nil {
		return "", err
	}
	if err := d.Rescan(ctx); err != nil { // before the size or the file system is called wrong
		return "", err
	}
	found, err := h.fs.Probe(ctx, d)
	if err != nil {
		return "", err
	}
	makeOne := found.FSType == "" || found.Unfinished
	switch {
	case found.Other != "":
		return refuse(volume.DataLoss, cause.FsUnknownContent, "holds %s and no supported file system; the driver neither mounts nor formats it. "+clearDisk, found.Other, d.Path)
	case found.Lost != "":
		return refuse(volume.DataLoss, cause.FsNeedsRepair, "shows no file system, but copies of one: %s. Its first superblock is lost, so the driver neither mounts nor formats it. "+
			"If its data is needed, make a snapshot first, and then repair it: %s. "+clearDisk, found.Lost, found.Repair, d.Path)
	case makeOne && s.FromSource:
		return refuse(volume.DataLoss, cause.FsUnknownContent, "shows no file system, and the volume was made from a source or recovered from a lost cluster. "+
			"The driver does not format it, since it may hold data that the driver does not recognise. "+
			"If it was used as a raw disk, its claim needs volumeMode Block. "+
			"If no pod ever used it or its source, nothing is on it. Then delete the claim and make one without a source")
	case makeOne && mounted:
		return refuse(volume.DataLoss, cause.DiskInUse, "shows no file system, and is mounted elsewhere on this node; the driver does not format it. Unmount it there first")
	case makeOne && readOnly:
		return refuse(volume.Conflict, cause.MountDiffers, "is empty and the request is read-only; mount the volume writable once")
	case makeOne:
		return h.format(ctx, s, d, found)
	case !fs.Supported(found.FSType):
		return refuse(volume.Conflict, cause.FsUnknownContent, "holds a %s file system; the driver mounts only %s. "+clearDisk, found.FSType, fs.SupportedTypes(), d.Path)
	case s.FSType != "" && !fs.SameFamily(found.FSType, s.FSType):
		return refuse(volume.Conflict, cause.FsUnknownContent, "holds a %s file system and the request names %s; set the fsType to %s",
			found.FSType, s.FSType, found.FSType)
	}
	return found.FSType, h.check(ctx, s.Volume, d, found.FSType, !readOnly && !mounted)
}

// clearDisk is advice for a disk that is refused. Its verb is the device. wipefs leaves the copies of a file system.
const clearDisk = "If nothing on the disk is needed, delete the claim, or clear all of the disk: blkdiscard --zeroout %s"

// format makes a file system on a disk that holds none, or one whose mkfs was killed, and returns its type.
func (h *Host) format(ctx context.Context, s StageSpec, d *disk.Disk, found fs.Content) (string, error) {
	if found.Unfinished {
		h.log.WarnContext(ctx, "mkfs was killed before it finished; no file can be on the file system, so the driver makes it again",
			"disk", d.Path, "serial", d.Serial, "type", found.FSType)
		if err := h.fs.ClearCopies(ctx, d); err != nil {
			return "", err
		}
	}
	fsType := cmp.Or(s.FSType, s.DefaultFSType, fs.DefaultType)
	return fsType, h.fs.Format(ctx, d, fsType, s.Format)
}

// check refuses a file system that is larger than its disk or uses another device. repair is true if fsck may write.
func (h *Host) check(ctx context.Context, id volume.ID, d *disk.Disk, fsType string, repair bool) error {
	if err := fs.CheckFits(d, id, fsType); err != nil {
		return err
	}
	if err := fs.CheckSingleDevice(d, id, fsType); err != nil {
		return err
	}
	if !repair || !fs.NeedsCheck(fsType) {
		return nil
	}
	if err := h.fs.Check(ctx, d); err != nil {
		return err
	}
	return fs.CheckSingleDevice(d, id, fsType) // again: fsck may have replaced the superblock by a backup
}

// mount mounts the disk, and then checks that the mount table shows it.
func (h *Host) mount(ctx context.Context, id volume.ID, d *disk.Disk, path, fsType string, options []string) error {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return volume.Errorf(volume.Failed, "make the staging directory: %w", err).Cause(cause.NodeSystem)
	}
	if err := d.Verify(ctx); err != nil {
		return err
	}
	if fsType == "btrfs" {
		h.fs.ForgetBtrfs(ctx, h.disks.VolumeNodes())
	}
	options = slices.Concat(fs.MountOptions(fsType), options)
	if err := h.mounts.Mount(ctx, d.Path, path, fsType, options); err != nil {
		return explainMountError(err, d, fsType)
	}
	table, err := h.mounts.Table()
	mounted, ok := table.At(path)
	if err == nil && !ok {
		return volume.Errorf(volume.Failed, "stage volume %s: mount(8) succeeded for disk %s at %s, but the mount table does not show it",
			id, d.Path, path).Cause(cause.MountFailed).AfterWrite()
	}
	if err == nil {
		err = h.checkDisk("stage", id, mounted, d, "the driver unmounted it")
	}
	if err == nil {
		err = h.checkContext(mounted, id, options, "the driver unmounted it")
	}
	if err != nil { // and nobody may write to it
		return errors.Join(err, h.mounts.UnmountTop(path))
	}
	return nil
}

const unstageFirst = "unstage the path first"

// checkDisk checks that a mounted file system is on the disk of the volume and on no other. Each call that answers OK because of
// a mount checks that, also where an earlier call made the mount. then ends the error.
func (h *Host) checkDisk(verb string, id volume.ID, mounted mount.Entry, d *disk.Disk, then string) error {
	if !mounted.On(d.Number) {
		return volume.Errorf(volume.Conflict, "%s volume %s: %s is mounted at %s, and the disk of the volume is %s (%s); %s",
			verb, id, mounted, mounted.Path, d.Path, d.Number, then).Cause(cause.DiskPath)
	}
	if mounted.FSType != "btrfs" {
		return nil
	}
	switch n, err := h.kernel.btrfsDevices(mounted.Path); {
	case err != nil:
		return volume.Errorf(volume.Failed, "%s volume %s: the kernel does not report how many devices the btrfs on disk %s at %s has; %s: %w",
			verb, id, d.Path, mounted.Path, then, err).Cause(cause.NodeSystem)
	case n != 1:
		return volume.Errorf(volume.Conflict, "%s volume %s: disk %s at %s is part of a btrfs of %d devices; %s. "+
			"Another disk of this server has the same UUID: detach it, or change its UUID (btrfstune -u)", verb, id, d.Path, mounted.Path, n, then).Cause(cause.FsDevices)
	}
	return nil
}

// explainMountError adds to the error of a mount what the kernel writes only to its log. The kernel recovers a file
// system that was not unmounted by writing to its disk, also for a read-only mount. A write-protected disk does not
// allow that.
func explainMountError(err error, d *disk.Disk, fsType string) error {
	if fsType == "btrfs" && strings.Contains(err.Error(), "File exists") {
		return volume.Errorf(volume.KindOf(err), "%w. Another disk of this server has a mounted btrfs of the same UUID, as a clone and its "+
			"source have. Linux before 6.7 mounts only one of them: use the volume on another node, or change its UUID (btrfstune -u)", err).Cause(cause.FsDevices)
	}
	if !d.ReadOnly() {
		if !volume.Is(err, volume.Failed) {
			return err
		}
		return volume.Errorf(volume.Failed, "%w. The kernel log of the node says why. If the file system is damaged, make a snapshot of the volume, and then repair it: %s",
			err, fs.RepairCommand(fsType, d.Path)).Cause(cause.MountFailed)
	}
	return volume.Errorf(volume.KindOf(err), "%w. The disk is write-protected, and the kernel must write to recover a file system that was "+
		"not unmounted cleanly. Stage the volume writable once, or add %s to mountOptions to read it as it is", err, fs.NoRecoveryOption(fsType))
}
