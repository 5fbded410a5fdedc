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

	sequence string // the kernel's number of this disk, never used twice; empty before Linux 5.15
	device
}

// Await finds the disk of a volume, waiting for it to appear until shortly before the context's deadline. Errors: NotFound for an
// id that is no UUID, Conflict when two disks claim the volume or a device node is not the disk that sysfs describes,
// DeadlineExceeded with what was seen instead, Canceled.
func (h *Host) Await(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if disk, err := h.find(ctx, id); disk != nil || err != nil {
		return disk, err
	}
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	began, patience, rescanned := time.Now(), patience(ctx), false
	for {
		disk, err := h.find(ctx, id)
		if disk != nil || err != nil {
			return disk, err
		}
		if !rescanned && time.Since(began) >= patience {
			rescanned = true
			h.startRescan()
		}
		if !sleep(ctx, pollInterval) {
			return nil, ended(ctx, "the disk of volume %s did not appear on this server within %s; %s",
				id, time.Since(began).Round(time.Millisecond), h.describe(id))
		}
	}
}

// patience is how long a disk is waited for before the SCSI hosts are asked to look for it.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return rescanAfter
	}
	return min(rescanAfter, time.Until(deadline)/2)
}

// Find is Await without the waiting: NotFound when the disk is not here now, Unavailable when one that is here does not say whose it is.
func (h *Host) Find(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	disk, err := h.find(ctx, id)
	if disk == nil && err == nil {
		return nil, h.missing(id)
	}
	return disk, err
}

// missing is the error for a volume without a disk. While some disk says nothing, nobody knows whose it is.
func (h *Host) missing(id volume.ID) error {
	names, _ := h.diskNames()
	if slices.ContainsFunc(names, func(name string) bool { return !h.recall(name).silent.IsZero() }) {
		return volume.Errorf(volume.Unavailable, "no disk on this server says that it is volume %s's, and not every disk answers; %s", id, h.describe(id))
	}
	return volume.Errorf(volume.NotFound, "volume %s has no disk on this server; %s", id, h.describe(id))
}

// find gives neither disk nor error when there is none, its device node is still to come, or it does not say that it is the volume's.
func (h *Host) find(ctx context.Context, id volume.ID) (*Disk, error) {
	disk, err := h.locate(ctx, id)
	if disk == nil || err != nil {
		return nil, err
	}
	if err := h.confirm(ctx, disk); err != nil { // from the opening on the name cannot pass to another disk
		_ = disk.Close()
		return nil, err
	}
	return disk, nil
}

// locate is find by what the disks said, without asking the one that is found again: enough to look who uses it, not to use it.
func (h *Host) locate(ctx context.Context, id volume.ID) (*Disk, error) {
	names, said, err := h.hear(ctx)
	if err != nil {
		return nil, err
	}
	var name, serial string
	var claims []string
	for _, n := range names {
		if s, ok := said[n].isOf(id); ok && said[n].silent.IsZero() {
			name, serial = n, s
			claims = append(claims, fmt.Sprintf("%s (%s, serial %q)", n, h.attribute(n, "dev"), s))
		}
	}
	switch len(claims) {
	case 0:
		return nil, nil
	case 1:
		return h.open(id, name, serial)
	}
	return nil, volume.Errorf(volume.Conflict, "%d disks have the serial of volume %s: %s; a serial keeps only %d characters on some buses, "+
		"detach the disk that is not meant", len(claims), id, strings.Join(claims, ", "), shortSerial)
}

// open makes sure that the device node is the one sysfs speaks of: a node left over from an earlier disk has the same name.
func (h *Host) open(id volume.ID, name, serial string) (*Disk, error) {
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
	return &Disk{Name: name, Path: path, Number: want, Serial: serial, sequence: h.attribute(name, "diskseq"), device: opened}, nil
}

// confirm makes sure that the disk is still the one that was found. It is called just before anything is done to a disk: an open
// disk keeps its name, but one that was pulled out is no disk any more, and its node may be somebody else's next. So nothing that was
// said before counts here.
func (h *Host) confirm(ctx context.Context, d *Disk) error {
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	said, ok := h.hearAgain(ctx, d.Name)
	if !ok {
		return ended(ctx, "disk %s with serial %q does not answer, asked at %s; its backend may hang", d.Path, d.Serial, said.silent.Format(time.RFC3339))
	}
	number, sequence := h.attribute(d.Name, "dev"), h.attribute(d.Name, "diskseq")
	if slices.Contains(said.serials, d.Serial) && number == d.Number.String() && sequence == d.sequence {
		return h.confirmNode(d)
	}
	return volume.Errorf(volume.Conflict, "%s was disk %s with serial %q, and now sysfs has %q with serial %q there; the disk was exchanged or went away, refused",
		d.Path, d.Number, d.Serial, number, said.serials)
}

// confirmNode makes sure that a program that is given the path opens the disk that is open here.
func (h *Host) confirmNode(d *Disk) error {
	again, err := h.openDevice(d.Path)
	if err != nil {
		return volume.Errorf(volume.Conflict, "%s was disk %s with serial %q and cannot be opened again; the disk went away, refused: %w",
			d.Path, d.Number, d.Serial, err)
	}
	defer again.Close()
	if got := again.Number(); got != d.Number {
		return volume.Errorf(volume.Conflict, "%s was disk %s with serial %q, and now it is device %s; the device node was exchanged, refused",
			d.Path, d.Number, d.Serial, got)
	}
	return nil
}

// diskNames lists the whole disks that sysfs has. Not those that are hidden: the paths to an NVMe disk that has several are disks
// without a device node, beside the one that they make, and have its serial.
func (h *Host) diskNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(h.sys, "block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "list the disks of this machine: %w", err)
	}
	var names []string
	for _, e := range entries {
		if h.attribute(e.Name(), "hidden") != "1" {
			names = append(names, e.Name())
		}
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

// describe tells what a person needs to see why no disk matched: every disk that could be a volume, what it said when it was asked
// last, and links that name the volume and lead to another disk.
func (h *Host) describe(id volume.ID) string {
	const most = 32
	names, _ := h.diskNames()
	var all []string
	for _, n := range names {
		said := h.recall(n)
		if hasPrefix(n, "loop", "ram", "zram") && len(said.serials) == 0 && said.silent.IsZero() {
			continue
		}
		all = append(all, fmt.Sprintf("%s (%s)", n, said))
	}
	text := "the disks here are "
	switch {
	case len(all) == 0:
		text += "none"
	case len(all) > most:
		text += strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	default:
		text += strings.Join(all, ", ")
	}
	return text + h.describeLinks(id)
}

// describeLinks tells of links in /dev/disk/by-id that name the volume. They are hints for a person: udev may be late or absent, and
// a link that nobody maintains opens the disk that has the name today.
func (h *Host) describeLinks(id volume.ID) string {
	links, _ := filepath.Glob(filepath.Join(h.dev, "disk", "by-id", "*"))
	var text strings.Builder
	for _, link := range links {
		name := filepath.Base(link)
		bare := strings.ReplaceAll(string(id), "-", "")
		if !strings.HasSuffix(name, string(id)) && !strings.HasSuffix(name, string(id[:shortSerial])) && !strings.HasSuffix(name, bare) {
			continue
		}
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		disk := filepath.Base(target)
		fmt.Fprintf(&text, "; the link %s leads to %s (%s): a link decides nothing, the disk's own serial does", name, disk, h.recall(disk))
	}
	return text.String()
}

// startRescan does not wait: with no disk at number 0 the kernel tries hundreds, which took 8 s in an emulated server. A scan that is
// stuck in the kernel is not joined by another at each try of the caller.
func (h *Host) startRescan() {
	if !h.scanning.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer h.scanning.Store(false)
		h.rescanHosts()
	}()
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
