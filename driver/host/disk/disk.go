// Package disk finds the disk of a volume by the serial that the disk itself reports.
//
// No name, link or order decides which disk belongs to a volume. The driver holds a disk open while it uses it, and
// verifies it again before each use. Nothing in this package writes to a disk.
//
// The Finder keeps the serials that disks reported in memory. When the process restarts, it reads them again.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Number is a device number, as sysfs, mountinfo and stat(2) show it.
type Number struct{ Major, Minor uint32 }

// String formats the number as sysfs does: major:minor.
func (n Number) String() string { return fmt.Sprintf("%d:%d", n.Major, n.Minor) }

func parseNumber(s string) (Number, bool) {
	var n Number
	s = strings.TrimSpace(s)
	if _, err := fmt.Sscanf(s, "%d:%d", &n.Major, &n.Minor); err != nil || n.String() != s {
		return Number{}, false
	}
	return n, true
}

// NumberOf splits a device number of stat(2).
func NumberOf(dev uint64) Number { return Number{unix.Major(dev), unix.Minor(dev)} }

// IsNode reports whether path is the node of the block device with that number.
func IsNode(path string, number Number) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	got, ok := numberOfInfo(info)
	return ok && got == number
}

func numberOfInfo(info os.FileInfo) (Number, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&(os.ModeDevice|os.ModeCharDevice) != os.ModeDevice {
		return Number{}, false
	}
	return NumberOf(stat.Rdev), true
}

// Device is an open block device.
type Device interface {
	io.ReaderAt
	io.Closer
	Number() Number
	Size() (volume.Size, error)
}

// Open opens a block device of this machine for reading.
func Open(path string) (Device, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	number, ok := numberOfInfo(info)
	if !ok {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a block device (%s)", path, info.Mode())
	}
	return blockDevice{f, number}, nil
}

type blockDevice struct {
	*os.File
	number Number
}

func (d blockDevice) Number() Number { return d.number }

// Size seeks to the end of the device, so it is right after the device has grown.
func (d blockDevice) Size() (volume.Size, error) {
	end, err := d.Seek(0, io.SeekEnd)
	return volume.Size(end), err
}

// Disk is the disk of a volume, found by its serial and held open. While it is open, the kernel gives its name and
// number to no other disk.
type Disk struct {
	Name   string // in sysfs: vdb
	Path   string // of its device node
	Number Number
	Serial string // as the disk itself reports it
	Device

	sequence string // diskseq of sysfs, which the kernel never uses twice; empty before Linux 5.15
	finder   *Finder
}

// Verify checks that the disk is still the one that Find found. Callers verify a disk just before each use. An open
// disk keeps its name, but another disk may take the device node of a disk that was pulled out. So cached serials do
// not count here.
//
// Errors: Conflict if another disk is there now, DeadlineExceeded if the disk does not answer. Unavailable if it
// does not say which one it is.
func (d *Disk) Verify(ctx context.Context) error {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "reading the serial of disk "+d.Path)()
	f := d.finder
	serial, ok := f.serials.readNow(ctx, func() key { return f.key(d.Name) })
	if !ok {
		return volume.Interrupted(ctx, "verify disk %s with serial %q: the disk has not answered since %s; its backend may be down",
			d.Path, d.Serial, serial.Unresponsive.Format(time.RFC3339)).Cause(cause.DiskSilent)
	}
	number, sequence := f.Attribute(d.Name, "dev"), f.Attribute(d.Name, "diskseq")
	here := f.FromHypervisor(d.Name) && number == d.Number.String() && sequence == d.sequence
	if here && serial.Refused.NoAnswer && (len(serial.Values) == 0 || slices.Contains(serial.Values, d.Serial)) {
		return volume.Errorf(volume.Unavailable, "verify disk %s with serial %q: the disk does not say which one it is, so the driver does not use it now: %s",
			d.Path, d.Serial, serial.Refused.Reason).Cause(cause.DiskSilent)
	}
	if !here || !serial.has(d.Serial) {
		return volume.Errorf(volume.Conflict, "verify disk %s: it was device %s with serial %q, and is now device %q with %s. "+
			"The disk was exchanged or removed, so the driver does not use it", d.Path, d.Number, d.Serial, number, serial).Cause(cause.DiskChanged)
	}
	return d.verifyNode()
}

// verifyNode checks that a program that opens the path opens the disk that is open here.
func (d *Disk) verifyNode() error {
	again, err := d.finder.options.Open(d.Path)
	if err != nil {
		return volume.Errorf(volume.Conflict, "verify disk %s: it was device %s with serial %q; "+
			"the disk was removed, so the driver does not use it: %w", d.Path, d.Number, d.Serial, err).Cause(cause.DiskChanged)
	}
	defer again.Close()
	if got := again.Number(); got != d.Number {
		return volume.Errorf(volume.Conflict, "verify disk %s: it was device %s with serial %q, and the device node is now device %s. "+
			"The device node was exchanged, so the driver does not use it", d.Path, d.Number, d.Serial, got).Cause(cause.DiskChanged)
	}
	return nil
}

// ReadOnly reports whether the kernel has the disk as write-protected.
func (d *Disk) ReadOnly() bool { return d.finder.Attribute(d.Name, "ro") == "1" }

// sizeTolerance is by how much a disk may be smaller than the requested size: the LUKS header of an encrypted volume
// takes space.
const sizeTolerance = volume.Size(32 << 20)

// AwaitSize waits until the disk has the requested size and returns its size. Within sizeTolerance it returns the
// requested size, since the caller compares the two. Error: DeadlineExceeded if the disk stays smaller.
func (d *Disk) AwaitSize(ctx context.Context, id volume.ID, requested volume.Size) (volume.Size, error) {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "waiting for disk "+d.Path+" of volume "+string(id)+" to grow")()
	for {
		size, err := d.Size()
		switch {
		case err != nil:
			return 0, volume.Errorf(volume.Failed, "read the size of disk %s of volume %s: %w", d.Path, id, err).Cause(cause.DiskUnreadable)
		case size >= requested:
			return size, nil
		case size >= requested-sizeTolerance:
			return requested, nil
		}
		if err := d.Rescan(ctx); err != nil {
			return 0, err
		}
		if volume.Sleep(ctx, pollInterval) != nil {
			return 0, volume.Interrupted(ctx, "disk %s of volume %s has %s; the driver waits until it has %s", d.Path, id, size, requested).Cause(cause.DiskSize)
		}
	}
}

// Holders names the devices that the kernel or a tool made of the disk, such as a mapping of the device mapper.
func (d *Disk) Holders() []string {
	entries, err := os.ReadDir(filepath.Join(d.finder.options.SysRoot, "block", d.Name, "holders"))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if mapped := d.finder.Attribute(name, filepath.Join("dm", "name")); mapped != "" {
			name += " (" + mapped + ")"
		}
		names = append(names, name)
	}
	return names
}

// ReadUncached reads a page of a disk that the kernel does not have in memory. It blocks for as long as the disk does not answer. If the kernel
// has sixteen random pages in memory, it reads none.
//
// It is not read with O_DIRECT: a thread that waits for such a read ends only when the disk answers, and so does its process. SIGKILL ends one
// that waits for a page, if something else has the disk open, such as a mount. Otherwise this is the last close, in which the kernel waits for the
// page (Linux 5.10 to 7.2, truncate_inode_pages_range).
func ReadUncached(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	size, err := unix.Seek(fd, 0, io.SeekEnd)
	page := int64(os.Getpagesize())
	if err != nil || size < page {
		return err
	}
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM) // no further pages
	buffer := make([]byte, page)
	for range 16 {
		at := rand.Int64N(size/page) * page
		if n, _ := unix.Preadv2(fd, [][]byte{buffer}, at, unix.RWF_NOWAIT); n > 0 {
			continue // in memory
		}
		_, err = unix.Pread(fd, buffer, at)
		_ = unix.Fadvise(fd, at, page, unix.FADV_DONTNEED)
		return err
	}
	return nil
}

// Sync writes out what the kernel has in memory of a disk, and the cache of the disk. It blocks for as long as the disk does not answer.
func Sync(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Fsync(fd)
}

// InUse reports whether the kernel refuses to open the device exclusively. A mounted file system, in whatever mount
// namespace, and a device made of the disk hold it exclusively.
func InUse(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return errors.Is(err, unix.EBUSY)
}
