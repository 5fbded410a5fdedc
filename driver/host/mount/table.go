// Package mount reads and changes the mounts of the driver's mount namespace.
//
// The mount table of the kernel is the only source: after each change the caller reads it again. Nothing here deletes
// anything but an empty directory or an empty file at a mount point.
package mount

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Entry is one mount of the mount table (proc_pid_mountinfo(5)).
type Entry struct {
	ID           int
	Device       disk.Number
	Root         string // the directory or file of the file system that is mounted
	Path         string // the mount point
	Options      []string
	FSType       string
	Source       string
	SuperOptions []string
}

// ReadOnly reports whether this mount refuses writes. The file system may be writable at another mount.
func (e Entry) ReadOnly() bool { return slices.Contains(e.Options, "ro") }

// ReadOnlyAfterError reports whether the table shows that the kernel made the file system read-only after an error. A mount
// that was read-only from the start has ro among the options of the mount too. From Linux 6.14 on ext4 shows emergency_ro
// beside rw. Linux 6.12 shows neither, so false proves nothing.
func (e Entry) ReadOnlyAfterError() bool {
	return slices.Contains(e.SuperOptions, "ro") && !e.ReadOnly() || slices.Contains(e.SuperOptions, "emergency_ro")
}

// On reports whether the file system of the mount is on the device. For btrfs it compares the source, since btrfs has a
// device number of its own.
func (e Entry) On(device disk.Number) bool {
	if e.FSType != "btrfs" {
		return e.Device == device
	}
	return disk.IsNode(e.Source, device)
}

func (e Entry) String() string {
	return fmt.Sprintf("%s (%s, device %s)", e.Source, e.FSType, e.Device)
}

// Table is a mount table, in the order of the kernel.
type Table []Entry

// At returns the mount that is visible at path: the last one that was made there.
func (t Table) At(path string) (Entry, bool) {
	for _, e := range slices.Backward(t) {
		if e.Path == path {
			return e, true
		}
	}
	return Entry{}, false
}

// PathsOn lists the mount points of the file system on the device.
func (t Table) PathsOn(device disk.Number) (paths []string) {
	for _, e := range t {
		if e.On(device) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// PathsInUse lists the paths at which a disk is in use. They are the mount points of its file system, and the paths at
// which its device node is bound for a block volume. It counts only binds that a tenant cannot make (security.md, "a
// device node in a pod's volume").
func (t Table) PathsInUse(device disk.Number, node string) []string {
	paths := t.PathsOn(device)
	var nodes unix.Stat_t
	if err := unix.Stat(node, &nodes); err == nil {
		for _, e := range t {
			if e.Device == disk.NumberOf(nodes.Dev) && !inPodVolume(e.Path) && disk.IsNode(e.Path, device) {
				paths = append(paths, e.Path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths) // a mount in a shared tree may be listed twice at one path
}

// inPodVolume reports whether a tenant can choose a part of the path. Such a path is in the directory of a pod below
// the directory of kubelet, wherever that is. It is not in pods/UID/volumeDevices, where kubelet binds the device nodes
// of block volumes. By subPath a tenant chooses what kubelet binds in pods/UID/volume-subpaths. Elsewhere only root
// mounts: in the plugins directory of kubelet, or wherever another orchestrator publishes volumes.
func inPodVolume(path string) bool {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "pods" && len(parts) > i+2 {
			return parts[i+2] != "volumeDevices"
		}
	}
	return false
}

// Table reads the mount table. Errors: Unavailable if it changes at each reading on a kernel where one reading may miss
// a mount.
func (m *Mounts) Table() (Table, error) {
	content, err := m.read()
	if errors.Is(err, errUnstable) {
		return nil, volume.Errorf(volume.Unavailable, "read the mount table: %w", err).Cause(cause.NodeSystem)
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "read the mount table: %w", err).Cause(cause.NodeSystem)
	}
	table, err := parse(content)
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "read the mount table: %w", err).Cause(cause.NodeSystem)
	}
	return table, nil
}

// read reads the file. Before Linux 5.8 the kernel returns it page by page. While others unmount, a mount may be on
// none of the pages (Linux, commit 9f6c61f96f2d). There the driver reads until two readings agree.
func (m *Mounts) read() ([]byte, error) {
	const limit = 10
	file := filepath.Join(m.options.ProcRoot, "self", "mountinfo")
	content, err := m.options.ReadFile(file)
	if err != nil || !olderThan(m.options.KernelRelease(), 5, 8) {
		return content, err
	}
	for range limit {
		again, err := m.options.ReadFile(file)
		if err != nil || bytes.Equal(again, content) {
			return again, err
		}
		content = again
	}
	return nil, errUnstable
}

var errUnstable = errors.New("the table changed at each reading, and before Linux 5.8 one reading may miss a mount; the caller retries")

// olderThan compares a kernel release, such as 5.4.0-187-generic, with a version. A release that it cannot parse counts
// as older.
func olderThan(release string, major, minor int) bool {
	var kernel struct{ major, minor int }
	if _, err := fmt.Sscanf(release, "%d.%d", &kernel.major, &kernel.minor); err != nil {
		return true
	}
	return kernel.major < major || kernel.major == major && kernel.minor < minor
}

// kernelRelease is the release of uname(2).
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// parse parses mountinfo. A line that it cannot parse is an error: the driver would mount over a mount that it does not
// see.
func parse(content []byte) (Table, error) {
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(content), nil)
	if err != nil {
		return nil, fmt.Errorf("%.300s", err.Error()) // the message repeats the line
	}
	table := make(Table, 0, len(mounts))
	for _, m := range mounts {
		if m.Mountpoint == "" || m.Major < 0 || m.Minor < 0 {
			return nil, fmt.Errorf("mount %d has no mount point or no device number", m.ID)
		}
		table = append(table, Entry{
			ID: m.ID, Device: disk.Number{Major: uint32(m.Major), Minor: uint32(m.Minor)}, Root: m.Root, Path: m.Mountpoint,
			Options: strings.Split(m.Options, ","), FSType: m.FSType, Source: m.Source, SuperOptions: strings.Split(m.VFSOptions, ","),
		})
	}
	return table, nil
}

// Mounts is the mount namespace of the driver.
type Mounts struct {
	Mounter
	options Options // each one is set
}

// Options says how mounts are read and changed.
type Options struct {
	ProcRoot string  // procfs; /proc if empty
	Mounter  Mounter // changes the mounts; required

	ReadFile      func(path string) ([]byte, error) // reads the table; os.ReadFile if nil
	KernelRelease func() string                     // as uname -r prints it; that of this machine if nil
}

// New returns the mount namespace of the driver. It reads nothing yet.
func New(o Options) *Mounts {
	o.ProcRoot = cmp.Or(o.ProcRoot, "/proc")
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.KernelRelease == nil {
		o.KernelRelease = kernelRelease
	}
	return &Mounts{Mounter: o.Mounter, options: o}
}
