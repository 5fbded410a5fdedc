package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/host/wait"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options says where sysfs and the device nodes are. The zero value is the real machine.
type Options struct {
	SysRoot string // sysfs; /sys if empty
	DevRoot string // device nodes, by the names that sysfs uses; /dev if empty
	Log     *slog.Logger

	ReadFile func(path string) ([]byte, error) // reads serials; os.ReadFile if nil
	Open     func(path string) (Device, error) // opens device nodes; Open if nil
}

type serialRead = singleflight.Call[Serial]

// Finder finds disks. Its methods may be called concurrently.
type Finder struct {
	sys, dev string
	log      *slog.Logger
	readFile func(path string) ([]byte, error)
	open     func(path string) (Device, error)

	cache    serialCache
	reads    singleflight.Group[key, Serial] // serials that are being read
	scanning atomic.Bool                     // a scan of the SCSI hosts is in progress
}

// NewFinder returns a Finder. It reads nothing yet.
func NewFinder(o Options) *Finder {
	f := &Finder{sys: cmp.Or(o.SysRoot, "/sys"), dev: cmp.Or(o.DevRoot, "/dev"), log: o.Log, readFile: o.ReadFile, open: o.Open}
	if f.log == nil {
		f.log = slog.Default()
	}
	if f.readFile == nil {
		f.readFile = os.ReadFile
	}
	if f.open == nil {
		f.open = Open
	}
	return f
}

// pollInterval is how often the driver reads sysfs while it waits for a disk or for its new size. One reading of 25
// disks takes 0.4 ms, so a wait costs 0.2% of a processor. On average a disk is found 100 ms after it appears. In QEMU
// guests polling found a disk 54 to 153 ms after the kernel's event (medians). A driver that listened to the kernel's
// events found it after 39 ms.
const pollInterval = 200 * time.Millisecond

// rescanAfter is how long a wait lasts before the driver asks the SCSI hosts for new disks. It is the last resort:
// virtio and virtio-scsi announce disks by themselves.
const rescanAfter = 15 * time.Second

// Await waits until the disk of a volume appears, and returns it verified and open.
//
// Errors: NotFound for an ID that is not a UUID. Conflict if two disks have the serial of the volume, or a device node
// is not the disk that sysfs describes. DeadlineExceeded, with the disks that are there instead. Canceled.
func (f *Finder) Await(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if disk, err := f.find(ctx, id); disk != nil || err != nil { // the usual case
		return disk, err
	}
	ctx, cancel := wait.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "waiting for the disk of volume "+string(id)+" to appear on this server")()
	began, rescanAt, rescanned := time.Now(), rescanDelay(ctx), false
	for {
		disk, err := f.find(ctx, id)
		if disk != nil || err != nil {
			return disk, err
		}
		if !rescanned && time.Since(began) >= rescanAt {
			rescanned = true
			f.startRescan()
		}
		if !wait.Sleep(ctx, pollInterval) {
			return nil, wait.Ended(ctx, "the disk of volume %s did not appear on this server within %s; %s",
				id, time.Since(began).Round(time.Millisecond), f.describe(id))
		}
	}
}

func rescanDelay(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return rescanAfter
	}
	return min(rescanAfter, time.Until(deadline)/2)
}

// Find returns the disk of a volume, verified and open, without waiting for it. Errors, besides those of Await:
// NotFound if no disk has the serial of the volume. Unavailable if none has it and some disk does not answer.
func (f *Finder) Find(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	disk, err := f.find(ctx, id)
	if disk == nil && err == nil {
		return nil, f.notFound(id)
	}
	return disk, err
}

// notFound is the error for a volume without a disk. While some disk does not answer, that disk may be the one of the
// volume.
func (f *Finder) notFound(id volume.ID) error {
	names, _ := f.names()
	if slices.ContainsFunc(names, func(name string) bool { return !f.cached(name).Answers() }) {
		return volume.Errorf(volume.Unavailable, "no disk on this server reports the serial of volume %s, but not every disk answers; %s", id, f.describe(id))
	}
	return volume.Errorf(volume.NotFound, "volume %s has no disk on this server; %s", id, f.describe(id))
}

// find returns nil without an error if there is no such disk, its device node is not there yet, or the disk does not
// answer.
func (f *Finder) find(ctx context.Context, id volume.ID) (*Disk, error) {
	disk, err := f.FindCached(ctx, id)
	if disk == nil || err != nil {
		return nil, err
	}
	if err := disk.Verify(ctx); err != nil { // once the disk is open, its name cannot pass to another disk
		_ = disk.Close()
		return nil, err
	}
	return disk, nil
}

// FindCached returns the disk of a volume by cached serials, open but not verified; nil if there is none. This is
// enough to see who uses the disk, and a disk that stopped answering does not delay it. Before any other use the caller
// verifies the disk.
func (f *Finder) FindCached(ctx context.Context, id volume.ID) (*Disk, error) {
	entries, err := f.List(ctx)
	if err != nil {
		return nil, err
	}
	var name, serial string
	var matches []string
	for _, e := range entries {
		if s, ok := e.Serial.Match(id); ok && e.Serial.Answers() {
			name, serial = e.Name, s
			matches = append(matches, fmt.Sprintf("%s (%s, serial %q)", e.Name, f.Attribute(e.Name, "dev"), s))
		}
	}
	switch len(matches) {
	case 0:
		return nil, nil
	case 1:
		return f.openDisk(id, name, serial)
	}
	return nil, volume.Errorf(volume.Conflict, "%d disks have the serial of volume %s: %s; on some buses a serial has only %d characters; "+
		"detach the disk that is not meant", len(matches), id, strings.Join(matches, ", "), shortSerial)
}

// openDisk opens a disk and checks that its device node is the device that sysfs describes. A node left over from an
// earlier disk has the same name.
func (f *Finder) openDisk(id volume.ID, name, serial string) (*Disk, error) {
	path := f.Node(name)
	want, ok := parseNumber(f.Attribute(name, "dev"))
	if !ok {
		return nil, nil // the kernel is adding or removing the disk
	}
	opened, err := f.open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "open the disk of volume %s: %w", id, err)
	}
	if got := opened.Number(); got != want {
		_ = opened.Close()
		return nil, volume.Errorf(volume.Conflict, "open the disk of volume %s: %s is device %s, but sysfs shows %s with serial %q as device %s. "+
			"The device node is stale or belongs to another disk, so the driver does not use it", id, path, got, name, serial, want)
	}
	return &Disk{Name: name, Path: path, Number: want, Serial: serial, Device: opened, sequence: f.Attribute(name, "diskseq"), finder: f}, nil
}

// startRescan returns at once. If a SCSI host has no disk at number 0, the kernel tries hundreds, which took 8 s in an
// emulated server. While a scan is stuck in the kernel, no further one starts.
func (f *Finder) startRescan() {
	if !f.scanning.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer f.scanning.Store(false)
		f.rescanHosts()
	}()
}

// rescanHosts asks every SCSI host to look for new disks. A read-only sysfs is no failure: the kernel usually knows the
// disks already.
func (f *Finder) rescanHosts() {
	hosts, _ := filepath.Glob(filepath.Join(f.sys, "class", "scsi_host", "*", "scan"))
	for _, scan := range hosts {
		if err := os.WriteFile(scan, []byte("- - -"), 0); err != nil {
			f.log.Debug("SCSI host not rescanned", "file", scan, "error", err)
		}
	}
}
