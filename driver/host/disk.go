package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Number is a device number, as sysfs, mountinfo and stat(2) give it.
type Number struct{ Major, Minor uint32 }

// String is the number as sysfs writes it, major:minor.
func (n Number) String() string { return fmt.Sprintf("%d:%d", n.Major, n.Minor) }

func parseNumber(s string) (Number, bool) {
	var n Number
	s = strings.TrimSpace(s)
	if _, err := fmt.Sscanf(s, "%d:%d", &n.Major, &n.Minor); err != nil || n.String() != s {
		return Number{}, false
	}
	return n, true
}

func numberOf(rdev uint64) Number { return Number{unix.Major(rdev), unix.Minor(rdev)} }

// device is an open block device.
type device interface {
	io.ReaderAt
	io.Closer
	Number() Number
	Size() (volume.Size, error)
}

// Disk is a volume's disk on this machine: found by its serial, verified, and held open, so that the kernel gives its name and
// number to no other disk before Close.
type Disk struct {
	Name   string // in sysfs: vdb
	Path   string // of its device node
	Number Number
	Serial string // as the disk itself reports it

	device
}

// Await finds the disk of a volume, waiting for it to appear until shortly before the context's deadline. Errors: NotFound for an
// id that is no UUID, Conflict when two disks claim the volume or a device node is not the disk that sysfs describes,
// DeadlineExceeded with what was seen instead, Canceled.
func (h *Host) Await(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	began, rescanned := time.Now(), time.Now()
	for pause := firstLook; ; pause = min(2*pause, slowestLook) {
		changed := h.changed()
		disk, err := h.find(id)
		if disk != nil || err != nil {
			return disk, err
		}
		if time.Since(rescanned) >= rescanEvery {
			h.rescanHosts()
			rescanned = time.Now()
		}
		if !sleep(ctx, pause, changed) {
			return nil, ended(ctx, "the disk of volume %s did not appear on this server within %s; the disks here are %s",
				id, time.Since(began).Round(time.Millisecond), h.describeDisks())
		}
	}
}

// Find is Await without the waiting: NotFound when the disk is not here now.
func (h *Host) Find(id volume.ID) (*Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	disk, err := h.find(id)
	if disk == nil && err == nil {
		return nil, volume.Errorf(volume.NotFound, "volume %s has no disk on this server; the disks here are %s", id, h.describeDisks())
	}
	return disk, err
}

// find gives neither disk nor error when there is none, or its device node is still to come.
func (h *Host) find(id volume.ID) (*Disk, error) {
	names, err := h.diskNames()
	if err != nil {
		return nil, err
	}
	var name, serial string
	var claims []string
	for _, n := range names {
		for _, s := range h.serials(n) {
			if isSerialOf(s, id) {
				name, serial = n, s
				claims = append(claims, fmt.Sprintf("%s (%s, serial %q)", n, h.attribute(n, "dev"), s))
				break
			}
		}
	}
	switch len(claims) {
	case 0:
		return nil, nil
	case 1:
		return h.verify(id, name, serial)
	}
	return nil, volume.Errorf(volume.Conflict, "%d disks have the serial of volume %s: %s; a serial keeps only %d characters on some buses, "+
		"detach the disk that is not meant", len(claims), id, strings.Join(claims, ", "), shortSerial)
}

// verify opens the disk and makes sure that the device node is the one sysfs speaks of: a node left over from an earlier disk has
// the same name. The serial is read once more after the opening, since from then on the name cannot pass to another disk.
func (h *Host) verify(id volume.ID, name, serial string) (*Disk, error) {
	path := filepath.Join(h.dev, name)
	want, ok := parseNumber(h.attribute(name, "dev"))
	if !ok {
		return nil, nil // the disk is just coming or going
	}
	opened, err := h.openDevice(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "open the disk of volume %s: %w", id, err)
	}
	if got := opened.Number(); got != want {
		_ = opened.Close()
		return nil, volume.Errorf(volume.Conflict, "%s is device %s, but sysfs says that %s with serial %q of volume %s is %s; "+
			"the device node is stale or another's, refused", path, got, name, serial, id, want)
	}
	if again := h.serials(name); !slices.Contains(again, serial) || h.attribute(name, "dev") != want.String() {
		_ = opened.Close()
		return nil, volume.Errorf(volume.Conflict, "%s showed serial %q of volume %s and, once opened, %q; the disk was exchanged, refused",
			path, serial, id, again)
	}
	return &Disk{Name: name, Path: path, Number: want, Serial: serial, device: opened}, nil
}

// diskNames lists the whole disks that sysfs has.
func (h *Host) diskNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(h.sys, "block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "list the disks of this machine: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// attribute reads a one-line file of a disk; empty when it is not there.
func (h *Host) attribute(name, file string) string {
	content, err := os.ReadFile(filepath.Join(h.sys, "block", name, file))
	if err != nil {
		return ""
	}
	return plainSerial(content)
}

// describeDisks tells what a person needs to see why no disk matched: every disk that could be a volume, and its serial.
func (h *Host) describeDisks() string {
	const most = 32
	names, _ := h.diskNames()
	var all []string
	for _, n := range names {
		if hasPrefix(n, "loop", "ram", "zram") && len(h.serials(n)) == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%s (serial %q)", n, strings.Join(h.serials(n), " ")))
	}
	switch {
	case len(all) == 0:
		return "none"
	case len(all) > most:
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}

// rescanHosts asks every SCSI host to look for disks nobody announced. A read-only sysfs is no failure: the kernel usually knows.
func (h *Host) rescanHosts() {
	hosts, _ := filepath.Glob(filepath.Join(h.sys, "class", "scsi_host", "*", "scan"))
	for _, scan := range hosts {
		if err := os.WriteFile(scan, []byte("- - -"), 0); err != nil {
			h.log.Debug("SCSI host not rescanned", "file", scan, "error", err)
		}
	}
}

func (h *Host) changed() <-chan struct{} {
	if h.events == nil {
		return nil
	}
	return h.events.Changed()
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// blockDevice is a device of this machine.
type blockDevice struct {
	*os.File
	number Number
}

func openBlockDevice(path string) (device, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&(os.ModeDevice|os.ModeCharDevice) != os.ModeDevice {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a block device (%s)", path, info.Mode())
	}
	return blockDevice{f, numberOf(stat.Rdev)}, nil
}

func (d blockDevice) Number() Number { return d.number }

// Size asks for the end of the device, which is its size also after it has grown.
func (d blockDevice) Size() (volume.Size, error) {
	end, err := d.Seek(0, io.SeekEnd)
	return volume.Size(end), err
}
