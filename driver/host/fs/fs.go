// Package fs probes, makes, checks and grows the file systems on the disks of volumes.
//
// A file system is made only on a disk that the driver read and two tools found empty. The tenant of a volume writes
// what is on it, so no field of it is trusted. The driver refuses a file system that names another device.
package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// DefaultType is the file system that is made if neither the request nor the driver's settings name one.
const DefaultType = "ext4"

// fileSystem describes one type of file system.
type fileSystem struct {
	family       string   // a type of the same family may be mounted in place of the requested one
	mkfs         []string // the program that makes one; the device follows
	mountOptions []string // always given, before those of the request
	fsck         bool     // whether `fsck.ext4 -a` before a mount does anything useful
	noRecovery   string   // the mount option that reads a file system that was not unmounted, without writing
	repair       string   // the program by which a person checks and repairs one; the device follows
}

// The tools of Debian 13 switch these features on, and older kernels then do not mount the file system. orphan_file needs Linux 5.15,
// metadata_csum_seed 4.4, nrext64 5.19. rmapbt was an experiment before 4.16. An update of the image must not raise the kernel that a node needs, so
// new file systems have none of them.
const (
	extPins      = "^metadata_csum_seed,^orphan_file"
	xfsMetaPins  = "rmapbt=0"
	xfsInodePins = "nrext64=0"
)

// fileSystems has the types and options of upstream's plugin. It adds errors=remount-ro for ext: a superblock may say
// errors=panic, in two fields, and a tenant can write both. The last of several such options counts, so a class can
// override it. XFS and btrfs have no such field: XFS panics where the sysctl fs.xfs.panic_mask says so, btrfs where the
// mount option fatal_errors does. XFS gets nouuid because a clone has the UUID of its source, and one server may have
// both.
var fileSystems = map[string]fileSystem{
	"ext2":  {family: "ext", mkfs: []string{"mkfs.ext2", "-F", "-m0", "-O", extPins}, mountOptions: []string{"errors=remount-ro"}, fsck: true, noRecovery: "noload", repair: "e2fsck -f"},
	"ext3":  {family: "ext", mkfs: []string{"mkfs.ext3", "-F", "-m0", "-O", extPins}, mountOptions: []string{"errors=remount-ro"}, fsck: true, noRecovery: "noload", repair: "e2fsck -f"},
	"ext4":  {family: "ext", mkfs: []string{"mkfs.ext4", "-F", "-m0", "-O", extPins}, mountOptions: []string{"errors=remount-ro"}, fsck: true, noRecovery: "noload", repair: "e2fsck -f"},
	"xfs":   {family: "xfs", mkfs: []string{"mkfs.xfs", "-f", "-m", xfsMetaPins, "-i", xfsInodePins}, mountOptions: []string{"nouuid"}, noRecovery: "norecovery", repair: "xfs_repair"},
	"btrfs": {family: "btrfs", mkfs: []string{"mkfs.btrfs"}, noRecovery: "rescue=nologreplay", repair: "btrfs check"},
}

// Supported reports whether the driver makes and mounts file systems of that type.
func Supported(fsType string) bool { _, ok := fileSystems[fsType]; return ok }

// SupportedTypes lists the supported types, for messages.
func SupportedTypes() string {
	return strings.Join(slices.Sorted(maps.Keys(fileSystems)), ", ")
}

// SameFamily reports whether a file system of type has may be mounted where the request names type want. ext2, ext3 and
// ext4 are one family.
func SameFamily(has, want string) bool { return fileSystems[has].family == fileSystems[want].family }

// MountOptions are the options that every mount of that type gets, before those of the request.
func MountOptions(fsType string) []string { return fileSystems[fsType].mountOptions }

// NoRecoveryOption is the mount option that reads a file system that was not unmounted as it is, without writing to its
// disk.
func NoRecoveryOption(fsType string) string { return fileSystems[fsType].noRecovery }

// RepairCommand is the command by which a person checks and repairs a file system of that type on a device.
func RepairCommand(fsType, device string) string { return fileSystems[fsType].repair + " " + device }

// NeedsCheck reports whether Check does anything useful for that type.
func NeedsCheck(fsType string) bool { return fileSystems[fsType].fsck }

// formatArguments are the arguments of mkfs for each field of contract.Format, by family. A family without one does not have
// the option.
var formatArguments = map[string]struct{ blockSize, inodeSize, bytesPerInode, inodes, portable []string }{
	"ext": {[]string{"-b", "%d"}, []string{"-I", "%d"}, []string{"-i", "%d"}, []string{"-N", "%d"}, []string{}},
	"xfs": {
		blockSize: []string{"-b", "size=%d"}, inodeSize: []string{"-i", "size=%d"},
		portable: []string{"-m", "bigtime=0,inobtcount=0"}, // Linux 5.10
	},
}

// mkfsArguments returns the arguments for the mkfs of a type; InvalidArgument if it lacks an option.
func mkfsArguments(fsType string, f contract.Format) ([]string, error) {
	options := formatArguments[fileSystems[fsType].family]
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
			return nil, volume.Errorf(volume.InvalidArgument, "the request sets a %s (%d), and %s has no such option", o.name, o.value, fsType).Cause(cause.FsUnsupported)
		default:
			arguments = append(arguments, o.argument[0], fmt.Sprintf(o.argument[1], o.value))
		}
	}
	switch {
	case !f.Portable:
	case options.portable == nil:
		return nil, volume.Errorf(volume.InvalidArgument, "the request asks for portable features, and %s has no such option", fsType).Cause(cause.FsUnsupported)
	default:
		arguments = append(arguments, options.portable...)
	}
	return arguments, nil
}

// Tools runs the programs of the file systems. Each method verifies the disk just before it runs a program that may
// write to it.
//
// A program that writes runs to its end even if the caller's context ends. A file system that is half made is neither
// empty nor usable.
type Tools struct {
	run   command.Runner
	sys   string
	ctrl  string // of btrfs
	inUse func(devicePath string) bool
	log   *slog.Logger
}

// Options says how Tools works. The zero value is the real machine.
type Options struct {
	SysRoot  string                       // sysfs; /sys if empty
	DevRoot  string                       // device nodes; /dev if empty
	Commands command.Runner               // runs the programs; processes of this machine if nil
	InUse    func(devicePath string) bool // disk.InUse if nil
	Log      *slog.Logger
}

// NewTools returns the tools of this machine.
func NewTools(o Options) *Tools {
	t := &Tools{
		run: cmp.Or[command.Runner](o.Commands, command.Processes{}), sys: cmp.Or(o.SysRoot, "/sys"),
		ctrl: filepath.Join(cmp.Or(o.DevRoot, "/dev"), "btrfs-control"), inUse: o.InUse, log: cmp.Or(o.Log, slog.Default()),
	}
	if t.inUse == nil {
		t.inUse = disk.InUse
	}
	return t
}

// ClearCopies overwrites the copies of a file system whose mkfs was killed, before it is made again. If the next mkfs is
// killed too, what it has changed then does not contradict them.
func (t *Tools) ClearCopies(ctx context.Context, d *disk.Disk) error {
	copies, err := FindCopies(ctx, d)
	if err == nil {
		err = d.Verify(ctx)
	}
	if err != nil || len(copies) == 0 {
		return err
	}
	f, err := os.OpenFile(d.Path, os.O_WRONLY|unix.O_EXCL, 0)
	if err != nil {
		return volume.Errorf(volume.Failed, "clear disk %s of an unfinished file system: %w", d.Path, err).Cause(cause.FsFormat)
	}
	for _, c := range copies {
		_, writeErr := f.WriteAt(make([]byte, clearSize), c.At/clearSize*clearSize)
		err = errors.Join(err, writeErr)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return volume.Errorf(volume.Failed, "clear disk %s of an unfinished file system: %w", d.Path, err).Cause(cause.FsFormat)
	}
	return nil
}

// clearSize is a sector, which no other copy shares.
const clearSize = 512

// Format makes a file system on an empty disk. Errors: InvalidArgument for an option that the type lacks, Failed if
// mkfs fails, Busy while something uses the disk, and those of Disk.Verify.
func (t *Tools) Format(ctx context.Context, d *disk.Disk, fsType string, format contract.Format) error {
	options, err := mkfsArguments(fsType, format)
	if err != nil {
		return err
	}
	if err := d.Verify(ctx); err != nil {
		return err
	}
	if t.inUse(d.Path) {
		return volume.Errorf(volume.Busy, "format disk %s as %s: something on this node uses the disk, so the driver does not format it. "+
			"The driver tries again when kubelet retries", d.Path, fsType).Cause(cause.DiskInUse)
	}
	mkfs := fileSystems[fsType].mkfs
	t.log.InfoContext(ctx, "making a file system", "disk", d.Path, "serial", d.Serial, "type", fsType, "options", options)
	result, err := command.Ask(context.WithoutCancel(ctx), t.run, mkfs[0], slices.Concat(mkfs[1:], options, []string{d.Path})...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "format disk %s as %s: %s", d.Path, fsType, result.Message()).Cause(cause.FsFormat)
	}
	return nil
}

// The exit codes of e2fsck (e2fsck(8), "Exit code"). It adds them up.
const (
	fsckCorrected   = 1
	fsckUncorrected = 4
	fsckFailed      = 8
)

// Check repairs what e2fsck can repair without a decision of a person (e2fsck(8) -a).
//
// e2fsck may be unable to check: the disk is in use, or the file system has a feature that it does not know. Then
// it is mounted for writing only if its superblock says that there is nothing to repair, or if it is in use already.
//
// Errors: DataLoss if errors remain, Unavailable if nothing checked a file system that may need it, and those of
// Disk.Verify.
func (t *Tools) Check(ctx context.Context, d *disk.Disk) error {
	if err := d.Verify(ctx); err != nil {
		return err
	}
	result, err := t.fsck(ctx, d, "-a")
	if err == nil && result.Code&fsckFailed != 0 {
		if backup, torn := tornSuperblock(d); torn {
			result, err = t.restoreSuperblock(ctx, d, backup)
		}
	}
	const notMounted = "check the file system on disk %s: nothing checked it, so the driver does not mount it: %w"
	switch {
	case err != nil:
		return volume.Errorf(volume.KindOf(err), notMounted, d.Path, err)
	case result.Code&fsckUncorrected != 0:
		return volume.Errorf(volume.DataLoss, "check the file system on disk %s: a person must decide how to repair it; "+
			"run e2fsck on a copy of the volume: %s", d.Path, result.Message()).Cause(cause.FsNeedsRepair)
	case result.Code == 0:
	case result.Code&fsckFailed == 0:
		t.log.WarnContext(ctx, "fsck corrected errors of a file system", "disk", d.Path, "serial", d.Serial, "fsck", result.Message())
	case extClean(d) || t.inUse(d.Path):
		t.log.WarnContext(ctx, "fsck did not check a file system that has nothing to repair or is in use already",
			"disk", d.Path, "serial", d.Serial, "code", result.Code, "fsck", result.Message())
	default:
		return volume.Errorf(volume.Unavailable, notMounted, d.Path, fmt.Errorf("fsck.ext4 could not (exit code %d), and the superblock does not say that "+
			"there is nothing to repair. The driver tries again when kubelet retries. If this stays so, run e2fsck on a copy of the volume: %s", result.Code, result.Message())).Cause(cause.FsNeedsRepair)
	}
	return nil
}

func (t *Tools) restoreSuperblock(ctx context.Context, d *disk.Disk, backup backupSuperblock) (command.Result, error) {
	t.log.WarnContext(ctx, "fsck was killed while it wrote the superblock; the driver restores it from its backup",
		"disk", d.Path, "serial", d.Serial, "block", backup.block)
	if err := d.Verify(ctx); err != nil {
		return command.Result{}, err
	}
	return t.fsck(ctx, d, "-p", "-b", fmt.Sprint(backup.block), "-B", fmt.Sprint(backup.blockSize))
}

// fsck runs fsck.ext4, which then opens no other disk. The journal that it replays may replace the superblock by one that names another device
// for the journal, and CheckSingleDevice cannot see that before. With -j, e2fsck takes /dev/null for such a journal, and fails.
func (t *Tools) fsck(ctx context.Context, d *disk.Disk, args ...string) (command.Result, error) {
	return command.Ask(context.WithoutCancel(ctx), t.run, "fsck.ext4", slices.Concat([]string{"-j", "/dev/null"}, args, []string{d.Path})...)
}

// Grow makes the file system that is mounted at path as large as its disk. It does nothing if it is that large already.
// Errors: Unimplemented for an unsupported type, Failed if the program fails, and those of Disk.Verify.
func (t *Tools) Grow(ctx context.Context, d *disk.Disk, fsType, path string) error {
	if err := d.Verify(ctx); err != nil {
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
		return volume.Errorf(volume.Unimplemented, "grow the %s file system at %s: the driver grows only %s", fsType, path, SupportedTypes()).Cause(cause.FsUnsupported)
	}
	result, err := command.Ask(context.WithoutCancel(ctx), t.run, tool[0], tool[1:]...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return volume.Errorf(volume.Failed, "grow the %s file system on disk %s at %s: %s%s", fsType, d.Path, path, result.Message(), t.whyNotPermitted(d, result)).Cause(cause.FsGrow)
	}
	return nil
}

// whyNotPermitted says why the kernel does not let resize2fs grow a mounted ext4. It gives one error for several
// reasons, and writes the reason only to its log (Linux, fs/ext4/resize.c, ext4_resize_begin).
func (t *Tools) whyNotPermitted(d *disk.Disk, result command.Result) string {
	if !strings.Contains(result.Stderr+result.Stdout, "Permission denied to resize") {
		return ""
	}
	if count := t.Ext4Errors(d.Name); count != "" {
		return ". ext4 recorded " + command.Printable(count) + " errors in this file system, and the kernel grows it only after a check. " +
			"Stop the pods that use the volume on this node: the driver checks it when it is staged again"
	}
	return ". ext4 shows no recorded errors. Then the driver lacks CAP_SYS_RESOURCE, which a privileged container has, or the file system " +
		"is mounted by a backup of its superblock (mount option sb=)"
}

// Ext4Errors returns how many errors ext4 recorded for the file system on a disk, by its name in sysfs; empty if none
// or unknown.
func (t *Tools) Ext4Errors(name string) string {
	content, err := os.ReadFile(filepath.Join(t.sys, "fs", "ext4", name, "errors_count"))
	count := strings.TrimSpace(string(content))
	if err != nil || count == "0" {
		return ""
	}
	return count
}

// Sync writes out the file system mounted at path. It may block for as long as the disk does not answer.
func Sync(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Syncfs(fd) // from Linux 5.8 on it reports writes that failed
}
