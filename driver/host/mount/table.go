// Package mount reads and changes the mounts of the driver's mount namespace.
//
// The mount table of the kernel is the only source: after each change the caller reads it again. Nothing here deletes
// anything but an empty directory or an empty file at a mount point.
package mount

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	table, err := m.read()
	switch {
	case errors.Is(err, errUnstable):
		return nil, volume.Errorf(volume.Unavailable, "read the mount table: %w", err).Cause(cause.NodeSystem)
	case err != nil:
		return nil, volume.Errorf(volume.Failed, "read the mount table: %w", err).Cause(cause.NodeSystem)
	}
	return table, nil
}

// read reads the file. Before Linux 5.8 the kernel returns it page by page. While others unmount, a mount may be on
// none of the pages (Linux, commit 9f6c61f96f2d). There the driver reads until two readings have the same mounts. Their
// roots do not count: a pod can rename a directory that is mounted by subPath as often as it likes.
func (m *Mounts) read() (Table, error) {
	const limit = 10
	file := filepath.Join(m.options.ProcRoot, "self", "mountinfo")
	table, err := m.options.Read(file)
	if err != nil || !olderThan(m.options.KernelRelease(), 5, 8) {
		return table, err
	}
	for range limit {
		again, err := m.options.Read(file)
		if err != nil || slices.EqualFunc(again, table, Entry.isMount) {
			return again, err
		}
		table = again
	}
	return nil, errUnstable
}

// isMount reports whether both are the same mount, at two times.
func (e Entry) isMount(other Entry) bool {
	return e.ID == other.ID && e.Device == other.Device && e.Path == other.Path
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

// Read reads a mount table, such as /proc/PID/mountinfo.
func Read(file string) (Table, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(f)
}

// parse parses mountinfo. A line that it cannot parse is an error: the driver would mount over a mount that it does not
// see.
func parse(text io.Reader) (table Table, err error) {
	for lines := bufio.NewReader(text); err == nil; {
		var line string
		if line, err = readLine(lines); line == "" && err != nil {
			break
		}
		e, ok := parseLine(line)
		if !ok {
			return nil, fmt.Errorf("this line has no mount point or no device number: %.300q", line)
		}
		table = append(table, e)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return table, nil
}

// Fields are cut, because tenants can lengthen some. The root of a mount is the path that its directory has now. A pod can
// move a directory that it has mounted by subPath below any number of others.
const (
	longestField = 4 * unix.PathMax // no system call takes a longer path, and an escape has four bytes
	longestRoot  = 1 << 10          // it is compared with / and with that of another mount of the same volume
)

// readLine reads a line without its end, and cuts its fields.
func readLine(lines *bufio.Reader) (string, error) {
	part, err := lines.ReadSlice('\n')
	if len(part) <= longestRoot {
		return strings.TrimSuffix(string(part), "\n"), err
	}
	var line []byte
	for field, size := 0, 0; ; part, err = lines.ReadSlice('\n') {
		for _, c := range part {
			if size++; c == ' ' {
				field, size = field+1, 0
			}
			if size <= longestRoot || size <= longestField && field != 3 {
				line = append(line, c)
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimSuffix(string(line), "\n"), err
		}
	}
}

// parseLine parses a line (proc_pid_mountinfo(5)).
func parseLine(line string) (Entry, bool) {
	mounted, system, _ := strings.Cut(line, " - ")
	fields := strings.Split(mounted, " ")
	fsType, rest, _ := strings.Cut(system, " ")
	source, super, ok := strings.Cut(rest, " ")
	if len(fields) < 6 || fields[4] == "" || !ok {
		return Entry{}, false
	}
	major, minor, _ := strings.Cut(fields[2], ":")
	id, err := strconv.Atoi(fields[0])
	majorNumber, majorErr := strconv.ParseUint(major, 10, 32)
	minorNumber, minorErr := strconv.ParseUint(minor, 10, 32)
	return Entry{
		ID: id, Device: disk.Number{Major: uint32(majorNumber), Minor: uint32(minorNumber)}, Root: unescape(fields[3]), Path: unescape(fields[4]),
		Options: strings.Split(fields[5], ","), FSType: unescape(fsType), Source: unescape(source), SuperOptions: strings.Split(super, ","),
	}, err == nil && majorErr == nil && minorErr == nil
}

// unescape decodes what the kernel escapes in octal, such as a blank (Linux, fs/seq_file.c, mangle_path).
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var plain []byte
	for len(text) > 0 {
		c, size := text[0], 1
		if c == '\\' && len(text) >= 4 {
			if code, err := strconv.ParseUint(text[1:4], 8, 8); err == nil {
				c, size = byte(code), 4
			}
		}
		plain, text = append(plain, c), text[size:]
	}
	return string(plain)
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

	Read          func(file string) (Table, error) // Read if nil
	KernelRelease func() string                    // as uname -r prints it; that of this machine if nil
}

// New returns the mount namespace of the driver. It reads nothing yet.
func New(o Options) *Mounts {
	o.ProcRoot = cmp.Or(o.ProcRoot, "/proc")
	if o.Read == nil {
		o.Read = Read
	}
	if o.KernelRelease == nil {
		o.KernelRelease = kernelRelease
	}
	return &Mounts{Mounter: o.Mounter, options: o}
}
