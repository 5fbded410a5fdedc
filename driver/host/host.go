// Package host is the Linux side of the node role: it stages, publishes, expands and unstages volumes, and reports
// their statistics and health.
//
// It combines its sub-packages. disk finds a disk by its serial. fs probes and makes file systems. mount reads and
// changes the mount table. metadata reads which server this is. limit counts the volumes that fit on it. None of them
// asks the cloud for more than the metadata of this server.
//
// The state of a volume is in the kernel: in sysfs, in the mount table and on the disk. In memory there are only
//   - Calls in progress into a disk or file system that may not answer. Here they are stats, health, reads, writes, grows, syncs, holders and users.
//     In disk they are serials, rescans and the scan of SCSI hosts; in metadata, the search of the config drive. Each runs once for all
//     callers. When the process restarts, the next caller starts it again, so at most one more thread blocks.
//   - The last serial of each disk, in disk. When the process restarts, the driver reads them again. A disk that no
//     longer answers then counts as a volume, which keeps the attach limit stable.
//   - The last attach capacity, in limit. After a restart there is none until the mount table can be read.
//   - The metadata of this server, which does not change while the server runs.
//   - The paths for which a warning about a writable publication was logged. After a restart the driver logs it again. So it is
//     with the warning about a kernel without SELinux.
package host

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/host/limit"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options says where the parts of this machine are. The zero value is the real machine.
type Options struct {
	SysRoot  string // sysfs; /sys if empty
	DevRoot  string // device nodes, by the names that sysfs uses; /dev if empty
	ProcRoot string // procfs; /proc if empty

	DriverName string // volumes below another name in the directory of kubelet are foreign; if empty, no name is

	Metadata metadata.Options // New sets Disks and SysRoot of it
	Log      *slog.Logger     // slog.Default if nil
	Commands command.Runner   // runs programs; processes of this machine if nil
	Mounter  mount.Mounter    // changes mounts; the kernel if nil
}

// Host is one machine. Its methods may be called concurrently. It does not keep two callers from working on the same
// volume: the caller locks the volume.
type Host struct {
	disks    *disk.Finder
	fs       *fs.Tools
	mounts   *mount.Mounts
	metadata *metadata.Reader
	limit    *limit.Counter
	log      *slog.Logger
	kernel   kernel
	proc     string // procfs

	stats    singleflight.Group[string, statsResult] // of the volumes at paths
	health   singleflight.Group[volume.ID, diskHealth]
	reads    singleflight.Group[string, error]    // of device nodes, whether their disks answer
	writes   singleflight.Group[volume.ID, error] // whether their file systems take a write
	grows    singleflight.Group[volume.ID, error]
	syncs    singleflight.Group[string, struct{}] // of device nodes, or of paths without one
	holders  singleflight.Group[string, bool]     // whether a supported file system is on a device node
	users    singleflight.Group[string, string]   // what describeUsers finds for a device node
	warnings sync.Map                             // target -> nothing: the warning about a writable publication was logged

	warnSELinux sync.Once // the warning about a kernel without SELinux
}

// kernel are the calls into the kernel that tests replace.
type kernel struct {
	stat         func(path string) (Stats, error)
	read         func(devicePath string) error
	write        func(path string) error
	lock         func(devicePath string) (unlock func(), err error)
	sync         func(path string) error
	syncDisk     func(devicePath string) error
	thaw         func(path string) (bool, error)
	loops        func(device disk.Number) []string
	inUse        func(devicePath string) bool
	btrfsDevices func(path string) (uint64, error)
}

// New returns this machine. It reads nothing yet.
func New(o Options) *Host { return newHost(o, disk.Options{}, mount.Options{}) }

// newHost is New with further parts that tests replace.
func newHost(o Options, d disk.Options, m mount.Options) *Host {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Commands = cmp.Or[command.Runner](o.Commands, command.Processes{})
	o.Mounter = cmp.Or[mount.Mounter](o.Mounter, mount.Kernel{Commands: o.Commands})
	d.SysRoot, d.DevRoot, d.Log = o.SysRoot, o.DevRoot, o.Log
	m.ProcRoot, m.Mounter = o.ProcRoot, o.Mounter
	h := &Host{
		disks: disk.NewFinder(d), mounts: mount.New(m), log: o.Log,
		kernel: kernel{stat: statPath, read: disk.ReadUncached, write: writeNothing, lock: lockNode, sync: fs.Sync, syncDisk: disk.Sync, thaw: thaw, inUse: disk.InUse, btrfsDevices: fs.BtrfsDevices},
		proc:   cmp.Or(o.ProcRoot, "/proc"),
	}
	h.fs = fs.NewTools(fs.Options{
		SysRoot: o.SysRoot, DevRoot: o.DevRoot, Commands: o.Commands, Log: o.Log,
		InUse: func(path string) bool { return h.kernel.inUse(path) },
	})
	h.kernel.loops = func(device disk.Number) []string {
		return loopsOn(cmp.Or(o.SysRoot, "/sys"), cmp.Or(o.DevRoot, "/dev"), device)
	}
	o.Metadata.SysRoot, o.Metadata.Disks = o.SysRoot, h.disks
	h.metadata = metadata.New(o.Metadata)
	h.limit = limit.New(limit.Options{SysRoot: o.SysRoot, Driver: o.DriverName, Disks: h.disks, Mounts: h.mounts})
	return h
}

// Server reads which Nova server this is; see metadata.Reader.
func (h *Host) Server(ctx context.Context) (metadata.Server, error) { return h.metadata.Server(ctx) }

// AttachCapacity counts the volumes that fit on this server; see limit.Counter. foreign names volumes that others
// attached to it.
func (h *Host) AttachCapacity(ctx context.Context, foreign []volume.ID) limit.Capacity {
	return h.limit.Count(ctx, foreign)
}

// AwaitDisk waits until the disk of a volume is on this server; see disk.Finder.Await.
func (h *Host) AwaitDisk(ctx context.Context, id volume.ID) error {
	d, err := h.disks.Await(ctx, id)
	if err != nil {
		return err
	}
	return d.Close()
}
