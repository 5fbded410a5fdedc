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

// pollInterval is how often the driver reads sysfs while it waits for a disk or for its new size. One reading of 25 disks takes 0.4 ms,
// so a wait costs 0.2% of a processor, and a disk is found 100 ms after it appears on average. Kernel events would save those.
const pollInterval = 200 * time.Millisecond

// rescanAfter is how long a wait lasts before the driver asks the SCSI hosts for new disks. It is the last resort: virtio and virtio-scsi
// announce disks by themselves.
const rescanAfter = 15 * time.Second

// Await waits until the disk of a volume appears, and returns it verified and open.
//
// Errors: NotFound for an ID that is not a UUID, Conflict if two disks have the serial of the volume or a device node is not the disk that
// sysfs describes, DeadlineExceeded with the disks that are there instead, Canceled.
func (f *Finder) Await(ctx context.Context, id volume.ID) (*Disk, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if disk, err := f.find(ctx, id); disk != nil || err != nil {
		return disk, err
	}
	ctx, cancel := wait.BeforeDeadline(ctx)
	defer cancel()
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

// Find returns the disk of a volume, verified and open, without waiting for it. Errors, besides those of Await: NotFound if no disk has the
// serial of the volume, Unavailable if none has it and some disk does not answer.
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

// notFound is the error for a volume without a disk. While some disk does not answer, that disk may be the one of the volume.
func (f *Finder) notFound(id volume.ID) error {
	names, _ := f.names()
	if slices.ContainsFunc(names, func(name string) bool { return !f.cached(name).Answers() }) {
		return volume.Errorf(volume.Unavailable, "no disk on this server reports the serial of volume %s, but not every disk answers; %s", id, f.describe(id))
	}
	return volume.Errorf(volume.NotFound, "volume %s has no disk on this server; %s", id, f.describe(id))
}

// find returns nil without an error if there is no such disk, its device node is not there yet, or the disk does not answer.
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

// FindCached returns the disk of a volume by cached serials, open but not verified; nil if there is none. This is enough to see who uses the
// disk, and a disk that stopped answering does not delay it. Before any other use the caller verifies the disk.
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

// openDisk opens a disk and checks that its device node is the device that sysfs describes: a node left over from an earlier disk has the
// same name.
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
		return nil, volume.Errorf(volume.Conflict, "open the disk of volume %s: %s is device %s, but sysfs shows %s with serial %q as device %s; "+
			"the device node is stale or belongs to another disk, so the driver does not use it", id, path, got, name, serial, want)
	}
	return &Disk{Name: name, Path: path, Number: want, Serial: serial, Device: opened, sequence: f.Attribute(name, "diskseq"), finder: f}, nil
}

// names lists the whole disks in sysfs, without hidden ones. The paths to an NVMe disk with multipath are hidden disks without a device
// node; they have the serial of the disk.
func (f *Finder) names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.sys, "block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "list the disks of this machine: %w", err)
	}
	var names []string
	for _, e := range entries {
		if f.Attribute(e.Name(), "hidden") != "1" {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Attribute reads a file of one line below /sys/block/NAME; empty if it is not there.
func (f *Finder) Attribute(name, file string) string {
	content, err := os.ReadFile(filepath.Join(f.sys, "block", name, file))
	if err != nil {
		return ""
	}
	return plainSerial(content)
}

// Partitions lists the partitions of a disk.
func (f *Finder) Partitions(name string) []string {
	files, _ := filepath.Glob(filepath.Join(f.sys, "block", name, "*", "partition"))
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// Node is the path of the device node of a disk or partition.
func (f *Finder) Node(name string) string { return filepath.Join(f.dev, name) }

// Open opens the device node of a disk or partition.
func (f *Finder) Open(name string) (Device, error) { return f.open(f.Node(name)) }

// VolumeNodes lists the device nodes of the disks that are volumes, by cached serials.
func (f *Finder) VolumeNodes() []string {
	names, _ := f.names()
	var nodes []string
	for _, name := range names {
		if f.cached(name).IsVolume() {
			nodes = append(nodes, f.Node(name))
		}
	}
	return nodes
}

// describe lists what a person needs to see why no disk matches: every disk that could be a volume with its cached serial, and links that
// name the volume and lead to another disk.
func (f *Finder) describe(id volume.ID) string {
	const longest = 32
	names, _ := f.names()
	var all []string
	for _, name := range names {
		serial := f.cached(name)
		if HasPrefix(name, "loop", "ram", "zram") && len(serial.Values) == 0 && serial.Answers() {
			continue
		}
		all = append(all, fmt.Sprintf("%s (%s)", name, serial))
	}
	text := "the disks on this server are "
	switch {
	case len(all) == 0:
		text = "this server has no disks"
	case len(all) > longest:
		text += strings.Join(all[:longest], ", ") + fmt.Sprintf(" and %d more", len(all)-longest)
	default:
		text += strings.Join(all, ", ")
	}
	return text + f.describeLinks(id)
}

// describeLinks names links in /dev/disk/by-id that carry the ID of the volume. They only help a person: udev may be late or absent, and a
// link that nobody maintains leads to whichever disk has the name today.
func (f *Finder) describeLinks(id volume.ID) string {
	links, _ := filepath.Glob(filepath.Join(f.dev, "disk", "by-id", "*"))
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
		fmt.Fprintf(&text, "; the link %s leads to %s (%s), but only the serial of the disk itself counts", name, disk, f.cached(disk))
	}
	return text.String()
}

// startRescan returns at once: if a SCSI host has no disk at number 0, the kernel tries hundreds, which took 8 s in an emulated server. While
// a scan is stuck in the kernel, no further one starts.
func (f *Finder) startRescan() {
	if !f.scanning.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer f.scanning.Store(false)
		f.rescanHosts()
	}()
}

// rescanHosts asks every SCSI host to look for new disks. A read-only sysfs is no failure: the kernel usually knows the disks already.
func (f *Finder) rescanHosts() {
	hosts, _ := filepath.Glob(filepath.Join(f.sys, "class", "scsi_host", "*", "scan"))
	for _, scan := range hosts {
		if err := os.WriteFile(scan, []byte("- - -"), 0); err != nil {
			f.log.Debug("SCSI host not rescanned", "file", scan, "error", err)
		}
	}
}

// HasPrefix reports whether s begins with one of the prefixes.
func HasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
