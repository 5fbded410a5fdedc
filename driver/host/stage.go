package host

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Staging is a volume's file system at a place of this machine.
type Staging struct {
	Volume volume.ID
	Path   string
	// FSType is the kind of file system to make and expect; empty expects what is there and makes Default, or ext4 when
	// that is empty too.
	FSType  string
	Default string
	Format  Format   // looked at only when a file system is made
	Flags   []string // mount options
	// ReadOnly mounts read-only, and then nothing is made, repaired or grown.
	ReadOnly bool
	// FromSource says that the volume was made from a snapshot, a volume, a backup or an image. Then it is never formatted, and its
	// file system is grown to the disk, which may be larger than its source was.
	FromSource bool
}

// Stage mounts a volume's file system, made first if the disk is empty. It does nothing if the right disk is mounted there.
//
// While anything is mounted at the path its errors are marked as after a write, so that kubelet goes on to unstage: after a final answer it
// holds the volume for unstaged, lets it be detached under the mount, and no later stage gets past what is there. Only Incompatible stays
// final, as the CSI specification has it.
//
// Errors, besides Await's: InvalidArgument for an unknown file system, a refused mount flag, or a Format that the file system to be
// made has no option for; Incompatible when the volume is
// there in another way; Conflict when another disk is mounted there or the disk holds another file system; DataLoss when
// the disk holds anything else or cannot be read.
func (h *Host) Stage(ctx context.Context, s Staging) error {
	err := h.stage(ctx, s)
	if err != nil && !volume.Is(err, volume.Incompatible) && h.mayBeMounted(s.Path) {
		return volume.AfterWrite(err)
	}
	return err
}

// mayBeMounted reports whether anything is mounted at path, or that is unknown.
func (h *Host) mayBeMounted(path string) bool {
	if resolved, err := resolve(path); err == nil {
		path = resolved
	}
	table, err := h.mounts()
	if err != nil {
		return true
	}
	_, mounted := table.At(path)
	return mounted
}

func (h *Host) stage(ctx context.Context, s Staging) error {
	options, readOnly, err := contract.ParseMountFlags(s.Flags)
	if err != nil {
		return volume.Errorf(volume.InvalidArgument, "%w", err)
	}
	if readOnly = readOnly || s.ReadOnly; s.ReadOnly {
		options = append(options, "ro")
	}
	for _, fsType := range []string{s.FSType, s.Default} {
		if fsType != "" && !Known(fsType) {
			return volume.Errorf(volume.InvalidArgument, "file system %q is not supported; the driver knows %s", shorten(fsType), kinds())
		}
	}
	path, err := resolve(s.Path)
	if err != nil {
		return err
	}
	disk, err := h.Await(ctx, s.Volume)
	if err != nil {
		return err
	}
	defer disk.Close()
	table, err := h.mounts()
	if err != nil {
		return err
	}
	there, staged := table.At(path)
	fsType := there.FSType
	if staged {
		err = s.accept(there, disk, readOnly)
	} else {
		fsType, err = h.prepareAndMount(ctx, s, disk, path, options, readOnly, table.Uses(disk))
	}
	if err != nil {
		return err
	}
	if s.FromSource && !readOnly { // also when it was staged: the growth may be what failed then
		return h.grow(ctx, disk, fsType, path)
	}
	return nil
}

func (h *Host) prepareAndMount(ctx context.Context, s Staging, disk *Disk, path string, options []string, readOnly, mounted bool) (string, error) {
	fsType, err := h.prepare(ctx, s, disk, readOnly, mounted)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return "", volume.Errorf(volume.Failed, "make the staging directory: %w", err)
	}
	return fsType, h.mount(ctx, s.Volume, disk, path, fsType, options)
}

// accept says whether what is mounted at the staging path is what is asked for. A writable mount serves a read-only wish, since
// each publication is read-only by itself; that is also how upstream stages.
func (s Staging) accept(there Mount, disk *Disk, readOnly bool) error {
	switch {
	case !there.On(disk):
		return volume.Errorf(volume.Conflict, "%s is mounted at %s, but volume %s is disk %s (%s); unstage the path first",
			there, there.Path, s.Volume, disk.Path, disk.Number)
	case s.FSType != "" && fileSystems[there.FSType].family != fileSystems[s.FSType].family:
		return volume.Errorf(volume.Incompatible, "volume %s is staged at %s as %s, not %s", s.Volume, there.Path, there.FSType, s.FSType)
	case there.ReadOnly() && !readOnly:
		return volume.Errorf(volume.Incompatible, "volume %s is staged read-only at %s and asked for writable", s.Volume, there.Path)
	}
	return nil
}

// prepare makes sure that a mountable file system is on the disk, and says which.
func (h *Host) prepare(ctx context.Context, s Staging, disk *Disk, readOnly, mounted bool) (string, error) {
	if !readOnly && h.attribute(disk.Name, "ro") == "1" {
		return "", volume.Errorf(volume.Conflict, "disk %s of volume %s is write-protected and asked for writable; ask for it read-only, or attach the volume for writing",
			disk.Path, s.Volume)
	}
	found, err := h.inspect(ctx, disk)
	if err != nil {
		return "", err
	}
	switch {
	case found.foreign != "":
		return "", volume.Errorf(volume.DataLoss, "disk %s of volume %s holds %s and no file system of ours; it is neither mounted nor formatted. "+
			"If nothing on it is needed, wipe it by hand", disk.Path, s.Volume, found.foreign)
	case found.unfinished && !mounted:
		h.log.WarnContext(ctx, "the tool that made the file system was killed before it had finished; no file can be on it, so it is made again",
			"disk", disk.Path, "serial", disk.Serial, "type", found.fsType)
		return h.prepareEmpty(ctx, s, disk, readOnly)
	case found.fsType == "":
		return h.prepareEmpty(ctx, s, disk, readOnly)
	case !Known(found.fsType):
		return "", volume.Errorf(volume.Conflict, "disk %s of volume %s holds a %s file system; the driver mounts %s", disk.Path, s.Volume, found.fsType, kinds())
	case s.FSType != "" && fileSystems[found.fsType].family != fileSystems[s.FSType].family:
		return "", volume.Errorf(volume.Conflict, "disk %s of volume %s holds a %s file system and %s is asked for; name %s as the fsType",
			disk.Path, s.Volume, found.fsType, s.FSType, found.fsType)
	}
	if err := checkOneDisk(disk, s.Volume, found.fsType); err != nil || !fileSystems[found.fsType].check || readOnly || mounted {
		return found.fsType, err
	}
	if err := h.check(ctx, disk); err != nil {
		return "", err
	}
	return found.fsType, checkOneDisk(disk, s.Volume, found.fsType) // again: fsck may have put a copy in the superblock's place
}

func (h *Host) prepareEmpty(ctx context.Context, s Staging, disk *Disk, readOnly bool) (string, error) {
	switch {
	case s.FromSource:
		return "", volume.Errorf(volume.DataLoss, "disk %s of volume %s, made from a source, shows no file system; it is not formatted, "+
			"since its source may hold data in a form unknown here", disk.Path, s.Volume)
	case readOnly:
		return "", volume.Errorf(volume.Conflict, "disk %s of volume %s is empty and asked for read-only; mount it writable once", disk.Path, s.Volume)
	}
	fsType := or(s.FSType, or(s.Default, "ext4"))
	return fsType, h.format(ctx, disk, fsType, s.Format)
}

// explain adds to the error of a mount what the kernel tells nobody but its log: a file system that was not unmounted is recovered by
// writing to its disk, also for a read-only mount, and a write-protected disk takes none.
func (h *Host) explain(err error, disk *Disk, fsType string) error {
	if fsType == "btrfs" && strings.Contains(err.Error(), "File exists") {
		return volume.Errorf(volume.KindOf(err), "%w; another disk of this server has a mounted btrfs of the same UUID, as a clone and its source have, and Linux "+
			"before 6.7 mounts one of them: use the volume on another node, or change its UUID (btrfstune -u)", err)
	}
	if h.attribute(disk.Name, "ro") != "1" {
		return err
	}
	return volume.Errorf(volume.KindOf(err), "%w; the disk is write-protected, and a file system that was not unmounted cleanly is recovered by writing: "+
		"stage the volume writable once, or add %s to mountOptions to read it as it is", err, fileSystems[fsType].unrecovered)
}

// mount mounts, and then looks whether the kernel says the same.
func (h *Host) mount(ctx context.Context, id volume.ID, disk *Disk, path, fsType string, options []string) error {
	if err := h.confirm(ctx, disk); err != nil {
		return err
	}
	if fsType == "btrfs" {
		h.forgetDisks(ctx)
	}
	options = slices.Concat(fileSystems[fsType].mount, options)
	if err := h.mounter.Mount(ctx, disk.Path, path, fsType, options); err != nil {
		return h.explain(err, disk, fsType)
	}
	table, err := h.mounts()
	if err != nil {
		return err
	}
	there, ok := table.At(path)
	if !ok {
		return volume.Errorf(volume.Failed, "disk %s was mounted at %s, and the mount table does not show it", disk.Path, path).AfterWrite()
	}
	if err := h.checkMounted(there, disk, id); err != nil { // and nobody may write to it
		return errors.Join(err, h.mounter.Unmount(path))
	}
	return nil
}
