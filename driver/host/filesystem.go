package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// fileSystem is what the driver knows of one kind of file system.
type fileSystem struct {
	family string   // kinds of one family can be mounted as what they are, whichever of them was asked for
	make   []string // the tool that makes one; the device follows
	mount  []string // options it always gets
	check  bool     // whether `fsck -a` before a mount does anything useful
	// unrecovered is the option that reads what is there without writing, also when the file system was not unmounted.
	unrecovered string
}

// fileSystems has upstream's kinds and options. ext gets errors=remount-ro because a superblock may say errors=panic, in two places, and what
// is on a volume is its tenant's to write; of two such options the last one counts, so the class can say otherwise. XFS and btrfs have nothing
// like it: XFS panics where the sysctl fs.xfs.panic_mask says so, btrfs where the mount option fatal_errors does. xfs gets nouuid because a clone has the UUID of its source, and both may come to
// one server.
var fileSystems = map[string]fileSystem{
	"ext2":  {family: "ext", make: []string{"mkfs.ext2", "-F", "-m0"}, mount: []string{"errors=remount-ro"}, check: true, unrecovered: "noload"},
	"ext3":  {family: "ext", make: []string{"mkfs.ext3", "-F", "-m0"}, mount: []string{"errors=remount-ro"}, check: true, unrecovered: "noload"},
	"ext4":  {family: "ext", make: []string{"mkfs.ext4", "-F", "-m0"}, mount: []string{"errors=remount-ro"}, check: true, unrecovered: "noload"},
	"xfs":   {family: "xfs", make: []string{"mkfs.xfs", "-f"}, mount: []string{"nouuid"}, unrecovered: "norecovery"},
	"btrfs": {family: "btrfs", make: []string{"mkfs.btrfs"}, unrecovered: "rescue=nologreplay"},
}

// Format says how a file system is made, in bytes but for Inodes. What is zero is left to the tool that makes it.
type Format struct {
	BlockSize, InodeSize, BytesPerInode int64
	Inodes                              int64
}

// formats are the arguments for each part of a Format, by family; a family without one has no such option.
var formats = map[string]struct{ blockSize, inodeSize, bytesPerInode, inodes []string }{
	"ext": {[]string{"-b", "%d"}, []string{"-I", "%d"}, []string{"-i", "%d"}, []string{"-N", "%d"}},
	"xfs": {blockSize: []string{"-b", "size=%d"}, inodeSize: []string{"-i", "size=%d"}},
}

// arguments are those for the tool that makes fsType. InvalidArgument when it has no such option.
func (f Format) arguments(fsType string) ([]string, error) {
	options := formats[fileSystems[fsType].family]
	var arguments []string
	for _, o := range []struct {
		name     string
		value    int64
		argument []string
	}{
		{"block size", f.BlockSize, options.blockSize},
		{"inode size", f.InodeSize, options.inodeSize},
		{"number of bytes per inode", f.BytesPerInode, options.bytesPerInode},
		{"number of inodes", f.Inodes, options.inodes},
	} {
		switch {
		case o.value == 0:
		case o.argument == nil:
			return nil, volume.Errorf(volume.InvalidArgument, "a %s is asked for (%d), and %s has no such option", o.name, o.value, fsType)
		default:
			arguments = append(arguments, o.argument[0], fmt.Sprintf(o.argument[1], o.value))
		}
	}
	return arguments, nil
}

// Known reports whether the driver makes and mounts file systems of that kind.
func Known(fsType string) bool { _, ok := fileSystems[fsType]; return ok }

func kinds() string {
	names := make([]string, 0, len(fileSystems))
	for name := range fileSystems {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// format makes a file system on an empty disk. It runs to its end whatever becomes of the caller: a half-made file system is
// neither empty nor usable.
func (h *Host) format(ctx context.Context, d *Disk, fsType string, f Format) error {
	chosen, err := f.arguments(fsType)
	if err != nil {
		return err
	}
	if err := h.confirm(ctx, d); err != nil {
		return err
	}
	tool := fileSystems[fsType].make
	h.log.InfoContext(ctx, "making a file system", "disk", d.Path, "serial", d.Serial, "type", fsType, "options", chosen)
	result, err := h.run.Run(context.WithoutCancel(ctx), tool[0], slices.Concat(tool[1:], chosen, []string{d.Path})...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "make %s on disk %s: %s", fsType, d.Path, result.Said())
	}
	return nil
}

// check repairs what can be repaired without asking (fsck(8), e2fsck(8) -a), to its end like format.
func (h *Host) check(ctx context.Context, d *Disk) error {
	const corrected, uncorrected, failed = 1, 4, 8
	if err := h.confirm(ctx, d); err != nil {
		return err
	}
	result, err := h.run.Run(context.WithoutCancel(ctx), "fsck", "-a", d.Path)
	if err != nil {
		return err
	}
	if backup, torn := tornSuperblock(d); torn && result.Code&failed != 0 {
		h.log.WarnContext(ctx, "fsck was killed while it wrote the superblock, so it is restored from its copy", "disk", d.Path, "serial", d.Serial, "block", backup.block)
		if err := h.confirm(ctx, d); err != nil {
			return err
		}
		if result, err = h.run.Run(context.WithoutCancel(ctx), "fsck.ext4", "-p", "-b", fmt.Sprint(backup.block), "-B", fmt.Sprint(backup.blockSize), d.Path); err != nil {
			return err
		}
	}
	switch {
	case result.Code&uncorrected != 0:
		return volume.Errorf(volume.DataLoss, "the file system on disk %s has errors that cannot be repaired without a decision; "+
			"run fsck on a copy of the volume: %s", d.Path, result.Said())
	case result.Code == corrected:
		h.log.WarnContext(ctx, "file system errors corrected", "disk", d.Path, "serial", d.Serial, "fsck", result.Said())
	case result.Code != 0:
		h.log.WarnContext(ctx, "file system not checked", "disk", d.Path, "serial", d.Serial, "code", result.Code, "fsck", result.Said())
	}
	return nil
}

// grow makes the mounted file system at path as large as its disk. It does nothing where that is so already.
func (h *Host) grow(ctx context.Context, d *Disk, fsType, path string) error {
	if err := h.confirm(ctx, d); err != nil {
		return err
	}
	var tool []string
	switch fileSystems[fsType].family {
	case "ext":
		tool = []string{"resize2fs", d.Path}
	case "xfs":
		tool = []string{"xfs_growfs", "-d", path}
	case "btrfs":
		tool = []string{"btrfs", "filesystem", "resize", "max", path}
	default:
		return volume.Errorf(volume.Unimplemented, "a %s file system cannot be grown; the driver grows %s", fsType, kinds())
	}
	result, err := h.run.Run(context.WithoutCancel(ctx), tool[0], tool[1:]...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "grow the %s file system on disk %s at %s: %s", fsType, d.Path, path, result.Said())
	}
	return nil
}
