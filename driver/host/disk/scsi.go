package disk

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// scsiPages are the files below /sys/block/NAME that hold the pages by which a SCSI disk identifies its LUN. They are
// copies that the kernel makes when it scans the LUN. If the LUN is given to another volume and the controller does not
// announce that, the copies stay. Only a rescan of the disk renews them (seen on Linux 6.1 with a virtio-scsi controller
// without hotplug). device/wwid is made of the copy of page 0x83.
var scsiPages = []struct {
	file string
	page byte
}{{"device/vpd_pg80", 0x80}, {"device/vpd_pg83", 0x83}}

// LUN is what a Device of a SCSI disk can do besides.
type LUN interface {
	// Inquire sends INQUIRY for a page of vital product data (SPC-4, 6.6). size is the length that the caller expects.
	// The error is fs.ErrNotExist if the disk answers that it has no such LUN or page. Any other says nothing about the LUN.
	Inquire(page byte, size int) ([]byte, error)
	// ForgetCache drops what the kernel has cached of the disk: it may be of the volume that the LUN was before.
	ForgetCache()
}

// copiedPages reads the copies of the kernel. A disk of another bus has none. A CD-ROM drive is never a volume, and does
// not answer without a medium.
func (f *Finder) copiedPages(name string) map[byte][]byte {
	pages := map[byte][]byte{}
	for _, p := range scsiPages {
		content, err := f.options.ReadFile(filepath.Join(f.options.SysRoot, "block", name, p.file))
		if err == nil && len(content) >= 4 && BusOf(name) != cdROM {
			pages[p.page] = content
		}
	}
	return pages
}

// confirmLUN asks a SCSI disk for the pages of which the kernel has copies. It returns why the copies do not count.
// If the LUN is another volume by now and nothing uses the disk, the kernel reads the LUN again first.
// It may block for as long as the disk does not answer.
//
// Another program may begin to use the disk after the check and before the kernel reads the LUN again. That harms nothing: it reads and
// writes the LUN as it is now either way. The rescan renews only what the kernel says about it, and ForgetCache drops no change.
func (f *Finder) confirmLUN(disk key, copies map[byte][]byte) Refusal {
	device, err := f.Open(disk.name)
	if err != nil {
		// A drive without a medium holds no volume. Any other disk may: the kernel does not open one that is offline.
		return Refusal{Reason: "it cannot be opened: " + err.Error(), NoAnswer: !errors.Is(err, unix.ENOMEDIUM)}
	}
	defer device.Close()
	if got := device.Number().String(); got != disk.number {
		return Refusal{Reason: "its device node is device " + got + ", not " + disk.number, NoAnswer: true}
	}
	same, err := f.sameLUN(device, copies)
	switch {
	case err == nil && same:
		return Refusal{}
	case err == nil && f.options.InUse(f.Node(disk.name)):
		return Refusal{Reason: "its LUN is another volume by now, and the disk is still in use as the earlier one", Replaced: true}
	case err == nil:
		f.rescanDisk(disk.name)
		if lun, ok := device.(LUN); ok {
			lun.ForgetCache()
		}
		same, err = f.sameLUN(device, f.copiedPages(disk.name))
	}
	switch {
	case err != nil:
		return Refusal{Reason: "it does not answer with its serial: " + err.Error(), NoAnswer: !errors.Is(err, fs.ErrNotExist)}
	case !same:
		return Refusal{Reason: "its LUN is another volume by now, and a rescan did not make the kernel see that"}
	}
	return Refusal{}
}

// sameLUN reports whether the disk answers with the pages that the kernel copied.
func (f *Finder) sameLUN(device Device, copies map[byte][]byte) (bool, error) {
	for page, content := range copies {
		lun, ok := device.(LUN)
		if !ok {
			return false, goneError{"it is not a SCSI disk"}
		}
		answer, err := lun.Inquire(page, len(content))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(content, answer) {
			return false, nil
		}
	}
	return true, nil
}

// rescanDisk makes the kernel read the identity and the size of a SCSI disk again. Other disks report a new size by
// themselves and have no such file.
func (f *Finder) rescanDisk(name string) {
	if err := f.options.Rescan(filepath.Join(f.options.SysRoot, "block", name, "device", "rescan")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.options.Log.Debug("disk not rescanned", "disk", name, "error", err)
	}
}

// Rescan makes the kernel read the size of a SCSI disk again. What the kernel shows may be of the time before the LUN
// was extended or exchanged. Other disks report a new size by themselves. DeadlineExceeded if the disk does not answer.
func (d *Disk) Rescan(ctx context.Context) error {
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	f := d.finder
	call, _ := f.rescans.Start(d.Name, func() struct{} { f.rescanDisk(d.Name); return struct{}{} })
	if !call.Wait(ctx) {
		return volume.Interrupted(ctx, "rescan disk %s with serial %q: the disk does not answer; its backend may be down", d.Path, d.Serial).Cause(cause.DiskSilent)
	}
	return nil
}

func writeRescan(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("1")
	return err
}

// ForgetCache implements LUN.
func (d blockDevice) ForgetCache() { _ = unix.IoctlSetInt(int(d.Fd()), unix.BLKFLSBUF, 0) }
