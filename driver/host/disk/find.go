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

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Options says where sysfs and the device nodes are. The zero value is the real machine.
type Options struct {
	SysRoot string // sysfs; /sys if empty
	DevRoot string // device nodes, by the names that sysfs uses; /dev if empty
	Log     *slog.Logger

	ReadFile func(path string) ([]byte, error) // reads serials; os.ReadFile if nil
	Open     func(path string) (Device, error) // opens device nodes; Open if nil
	Rescan   func(file string) error           // writes to the file rescan of a SCSI disk, if not nil
	InUse    func(path string) bool            // InUse if nil
}

// Finder finds disks. Its methods may be called concurrently.
type Finder struct {
	options  Options // each one is set
	serials  serialStore
	rescans  singleflight.Group[string, struct{}] // SCSI disks that are being rescanned
	scanning atomic.Bool                          // a scan of the SCSI hosts is in progress
}

// NewFinder returns a Finder. It reads nothing yet.
func NewFinder(o Options) *Finder {
	o.SysRoot, o.DevRoot, o.Log = cmp.Or(o.SysRoot, "/sys"), cmp.Or(o.DevRoot, "/dev"), cmp.Or(o.Log, slog.Default())
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.Open == nil {
		o.Open = Open
	}
	if o.Rescan == nil {
		o.Rescan = writeRescan
	}
	if o.InUse == nil {
		o.InUse = InUse
	}
	f := &Finder{options: o}
	f.serials.ask = f.askSerial
	return f
}

// pollInterval is how often the driver reads sysfs while it waits for a disk or for its new size. One reading of 25
// disks takes 0.4 ms, so a wait costs 0.2% of a processor. On average a disk is found 100 ms after it appears. In QEMU
// guests polling found a disk 109 to 189 ms after the kernel's event (medians). A driver that listened to the kernel's
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
	if disk, err := f.find(ctx, id, listAge); disk != nil || err != nil { // the usual case
		return disk, err
	}
	ctx, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	defer volume.BeginStep(ctx, "waiting for the disk of volume "+string(id)+" to appear on this server")()
	began, rescanAt, rescanned := time.Now(), rescanDelay(ctx), false
	for {
		disk, err := f.find(ctx, id, listAge)
		if disk != nil || err != nil {
			return disk, err
		}
		if !rescanned && time.Since(began) >= rescanAt {
			rescanned = true
			f.startRescan()
		}
		if volume.Sleep(ctx, pollInterval) != nil {
			return nil, volume.Interrupted(ctx, "the disk of volume %s did not appear on this server within %s; %s",
				id, time.Since(began).Round(time.Millisecond), f.describe(id)).Cause(cause.DiskMissing)
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
// NotFound if no disk has the serial of the volume. Unavailable if none has it and some disk may be that of the volume.
func (f *Finder) Find(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	disk, err := f.find(ctx, id, 0)
	if disk == nil && err == nil {
		return nil, f.notFound(id)
	}
	return disk, err
}

// notFound is the error for a volume without a disk. While some disk does not answer, that disk may be the one of the
// volume. So may a disk in use whose LUN was given to another volume: it may be either.
func (f *Finder) notFound(id volume.ID) error {
	names, _ := f.names()
	unavailable := func(why string) error {
		return volume.Errorf(volume.Unavailable, "no disk on this server reports the serial of volume %s, but %s; %s", id, why, f.describe(id)).Cause(cause.DiskMissing)
	}
	some := func(is func(name string, s Serial) bool) bool {
		return slices.ContainsFunc(names, func(name string) bool { return is(name, f.lastSerial(name)) })
	}
	switch {
	case some(func(_ string, s Serial) bool { return !s.Answers() }):
		return unavailable("not every disk answers")
	case some(func(_ string, s Serial) bool { return s.Refused.NoAnswer }):
		return unavailable("a disk does not say which one it is")
	case some(func(_ string, s Serial) bool { return s.Refused.Replaced }):
		return unavailable("a disk in use was given to another volume; unmount what uses it")
	case some(f.unopened(id)):
		return volume.Errorf(volume.Unavailable, "the disk of volume %s is on this server, but cannot be opened now; %s", id, f.describe(id)).Cause(cause.DiskMissing)
	}
	return volume.Errorf(volume.NotFound, "volume %s has no disk on this server; %s", id, f.describe(id)).Cause(cause.DiskMissing)
}

// unopened reports whether a SCSI disk is that of the volume, although the search gave none. The kernel does not open a
// disk that it has set offline.
func (f *Finder) unopened(id volume.ID) func(name string, s Serial) bool {
	return func(name string, s Serial) bool {
		_, ok := s.Match(id)
		return ok && f.FromHypervisor(name) && len(f.copiedPages(name)) > 0
	}
}

// find returns nil without an error if there is no such disk, its device node is not there yet, or the disk does not
// answer. maxAge is as in lookUp.
func (f *Finder) find(ctx context.Context, id volume.ID, maxAge time.Duration) (*Disk, error) {
	for again := false; ; again = true {
		disk, err := f.lookUp(ctx, id, maxAge)
		if disk == nil || err != nil {
			return nil, err
		}
		err = disk.Verify(ctx) // once the disk is open, its name cannot pass to another disk
		if err == nil {
			return disk, nil
		}
		_ = disk.Close()
		if volume.Is(err, volume.Unavailable) {
			return nil, nil // it does not answer; Await asks it again
		}
		if again || !volume.Is(err, volume.Conflict) || len(f.copiedPages(disk.Name)) == 0 {
			return nil, err
		}
		// The LUN of a SCSI disk is another volume since the last search; the disk of this volume may be elsewhere.
	}
}

// FindCached returns the disk of a volume by cached serials, open but not verified; nil if there is none. This is
// enough to see who uses the disk, and a disk that stopped answering does not delay it. Before any other use the caller
// verifies the disk. A SCSI disk that does not confirm the copy of the kernel counts if no other has the serial. What is
// mounted is what the kernel has.
func (f *Finder) FindCached(ctx context.Context, id volume.ID) (*Disk, error) {
	disk, err := f.lookUp(ctx, id, listAge)
	if disk != nil || err != nil {
		return disk, err
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var found, serial string
	for _, name := range names {
		s := f.lastSerial(name)
		copied, ok := s.matchCopy(id)
		if !ok || !s.Answers() || !s.Refused.NoAnswer && !s.Refused.Replaced {
			continue
		}
		if found != "" {
			return nil, nil // which of them is unknown
		}
		found, serial = name, copied
	}
	if found == "" {
		return nil, nil
	}
	return f.openDisk(id, found, serial)
}

// MayBe lists the disks that may be the one of a volume. They have its serial, or are disks of the hypervisor that have not reported one yet. It asks no
// disk.
func (f *Finder) MayBe(id volume.ID) (disks []Place, err error) {
	names, err := f.names()
	for _, name := range names {
		s := f.lastSerial(name)
		_, matches := s.matchCopy(id)
		unsaid := !s.Known || s.Refused.NoAnswer && len(s.Values) == 0
		number, ok := parseNumber(f.Attribute(name, "dev"))
		if ok && f.FromHypervisor(name) && (matches || unsaid) {
			disks = append(disks, Place{Path: f.Node(name), Number: number, Serial: s})
		}
	}
	return disks, err
}

// Place is where a disk is, without the disk open.
type Place struct {
	Path   string // of its device node
	Number Number
	Serial Serial
}

// lookUp finds a disk by cached serials, open but not verified. If no disk matches, it asks the SCSI disks whose serials are older than maxAge; if
// several do, all.
func (f *Finder) lookUp(ctx context.Context, id volume.ID, maxAge time.Duration) (*Disk, error) {
	entries, aged, err := f.list(ctx, anyAge)
	if err != nil {
		return nil, err
	}
	matches := matching(entries, id)
	if len(matches) > 1 {
		maxAge = 0 // a LUN that moved a moment ago matches at its old place too
	}
	for aged && len(matches) != 1 {
		if entries, aged, err = f.list(ctx, maxAge); err != nil {
			return nil, err
		}
		matches = matching(entries, id)
		if len(matches) == 0 || maxAge == 0 {
			break
		}
		maxAge = 0
	}
	switch len(matches) {
	case 0:
		return nil, nil
	case 1:
		serial, _ := matches[0].Serial.Match(id)
		return f.openDisk(id, matches[0].Name, serial)
	}
	var all []string
	for _, e := range matches {
		all = append(all, fmt.Sprintf("%s (%s, %s)", e.Name, f.Attribute(e.Name, "dev"), e.Serial))
	}
	return nil, volume.Errorf(volume.Conflict, "%d disks have the serial of volume %s: %s; on some buses a serial has only %d characters; "+
		"detach the disk that is not meant", len(matches), id, strings.Join(all, ", "), shortSerial).Cause(cause.DiskAmbiguous)
}

// matching returns the disks that answer and whose serial is that of the volume.
func matching(entries []Entry, id volume.ID) (matches []Entry) {
	for _, e := range entries {
		if _, ok := e.Serial.Match(id); ok && e.Serial.Answers() {
			matches = append(matches, e)
		}
	}
	return matches
}

// openDisk opens a disk and checks that its device node is the device that sysfs describes. A node left over from an
// earlier disk has the same name.
func (f *Finder) openDisk(id volume.ID, name, serial string) (*Disk, error) {
	path := f.Node(name)
	want, ok := parseNumber(f.Attribute(name, "dev"))
	if !ok {
		return nil, nil // the kernel is adding or removing the disk
	}
	opened, err := f.options.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "open the disk of volume %s: %w", id, err).Cause(cause.DiskUnreadable)
	}
	if got := opened.Number(); got != want {
		_ = opened.Close()
		return nil, volume.Errorf(volume.Conflict, "open the disk of volume %s: %s is device %s, but sysfs shows %s with serial %q as device %s. "+
			"The device node is stale or belongs to another disk, so the driver does not use it", id, path, got, name, serial, want).Cause(cause.DiskChanged)
	}
	return &Disk{Name: name, Path: path, Number: want, Serial: serial, Device: opened, sequence: f.Attribute(name, "diskseq"), finder: f}, nil
}

// startRescan returns at once. If a SCSI host has no disk at number 0, the kernel tries hundreds, which took 8 s in an
// emulated server. While a scan is stuck in the kernel, no further one starts.
func (f *Finder) startRescan() {
	if !f.scanning.CompareAndSwap(false, true) {
		return
	}
	panics.Go(f.options.Log, "the rescan of the SCSI hosts", func() {
		defer f.scanning.Store(false)
		f.rescanHosts()
	})
}

// rescanHosts asks every SCSI host to look for new disks. A read-only sysfs is no failure: the kernel usually knows the
// disks already.
func (f *Finder) rescanHosts() {
	hosts, _ := filepath.Glob(filepath.Join(f.options.SysRoot, "class", "scsi_host", "*", "scan"))
	for _, scan := range hosts {
		if err := os.WriteFile(scan, []byte("- - -"), 0); err != nil {
			f.options.Log.Debug("SCSI host not rescanned", "file", scan, "error", err)
		}
	}
}
