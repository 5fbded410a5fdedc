// Package limit counts how many volumes can be attached to this server, from its hot-plug slots and disks.
//
// It only reads sysfs and the mount table.
package limit

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// scsiLimit is how many disks the driver allows on a server with a virtio-scsi controller. The controller has no limit
// that the server could read. 300 disks were attached to one, at about a third of a MiB of kernel memory each.
const scsiLimit = 128

// Capacity is how many volumes can be attached to this server, term by term. Attached, Arriving and Free change
// together while a volume comes or goes; their sum does not.
type Capacity struct {
	Bus      string // of the next volume: virtio or scsi; empty if unknown
	Attached int    // volumes that are attached, without the foreign ones
	Arriving int    // virtio disks that the kernel has not named yet, or no longer names
	Free     int    // hot-plug slots, or what is left of scsiLimit
	Foreign  int    // attached volumes that the driver does not manage: those that this machine runs from, of other drivers, or named by the caller
	Unknown  string // why the capacity is unknown; empty if it is known
	Stale    string // why this is an earlier answer; empty if it is of now
}

// Volumes is how many volumes of the driver fit on the server, with those that are attached.
func (c Capacity) Volumes() int { return c.Attached + c.Arriving + c.Free }

// Options says what is counted.
type Options struct {
	SysRoot string // sysfs; /sys if empty
	Driver  string // the name of this driver; if empty, no volume is of another one
	Disks   *disk.Finder
	Mounts  *mount.Mounts
}

// Counter counts volumes and slots.
type Counter struct {
	sys    string
	driver string
	disks  *disk.Finder
	mounts *mount.Mounts
	last   atomic.Pointer[Capacity] // the last one for which the disks and the mount table could be read
}

// New returns a Counter. It reads nothing yet.
func New(o Options) *Counter {
	return &Counter{sys: cmp.Or(o.SysRoot, "/sys"), driver: o.Driver, disks: o.Disks, mounts: o.Mounts}
}

// Count counts. foreign names volumes that others attached to this server.
//
// While sysfs is read, a disk that comes or goes may be in none of the terms or in two. So Count returns what two
// readings agree on. A disk that does not answer counts as what it was: it still takes its slot. While the disks or
// the mount table cannot be read, the volumes of other drivers look like those of this one. Then Count returns its last answer, or says that it has none.
func (c *Counter) Count(ctx context.Context, foreign []volume.ID) Capacity {
	const readings = 5
	var last Capacity
	for n := range readings + 1 {
		next, err := c.countOnce(ctx, foreign)
		if known := c.last.Load(); err != nil && known != nil {
			kept := *known
			kept.Stale = err.Error()
			return kept
		}
		if err != nil {
			return Capacity{Unknown: err.Error()}
		}
		if n > 0 && next == last {
			break
		}
		last = next
	}
	c.last.Store(&last)
	return last
}

// countOnce reads once. The error is that of the disks or of the mount table.
func (c *Counter) countOnce(ctx context.Context, foreign []volume.ID) (Capacity, error) {
	disks, err := c.disks.List(ctx)
	if err != nil {
		return Capacity{}, err
	}
	used, err := c.mountedDisks(disks)
	if err != nil {
		return Capacity{}, err
	}
	var result Capacity
	var root, first string // a disk that this machine runs from, a volume
	scsi := 0
	for _, d := range disks {
		if disk.BusOf(d.Name) == disk.SCSI && !d.Remote {
			scsi++
		}
		isSystem := slices.Contains(used.system, d.Name)
		if isSystem && root == "" {
			root = d.Name
		}
		if !countsAsVolume(d.Serial, isSystem) {
			continue
		}
		isForeign := slices.Contains(used.others, d.Name) || slices.ContainsFunc(foreign, func(id volume.ID) bool { _, ok := d.Serial.Match(id); return ok })
		if isSystem || isForeign {
			result.Foreign++
			continue
		}
		result.Attached++
		first = cmp.Or(first, d.Name)
	}
	// Nova gives every disk of a server the bus of the image property hw_disk_bus, so the root disk shows it.
	c.countFree(&result, cmp.Or(root, first), scsi)
	return result, nil
}

// countsAsVolume reports whether a volume takes a slot by the disk. A disk that never answered counts as a volume
// unless the machine runs from it. A disk without a serial has no backend that could be down while the machine runs.
func countsAsVolume(s disk.Serial, isSystem bool) bool {
	return s.IsVolume() || !s.Known && !isSystem
}

// countFree adds the bus and the free slots. Volumes will have the bus of the example disk.
func (c *Counter) countFree(result *Capacity, example string, scsi int) {
	if example == "" {
		result.Unknown = "the server shows neither a system disk nor a volume"
		return
	}
	switch bus := disk.BusOf(example); bus {
	case disk.VirtioBlk:
		pci := c.pciSlots()
		if pci.Total == 0 {
			result.Unknown = "the kernel shows no hot-plug slots of the PCI bus"
			return
		}
		result.Bus, result.Free, result.Arriving = string(bus), pci.Free, pci.Arriving
	case disk.SCSI:
		if driver := c.scsiDriver(example); driver != "virtio_scsi" {
			result.Unknown = "the limit of the SCSI controller " + driver + " of disk " + example + " is unknown"
			return
		}
		result.Bus, result.Free = string(bus), max(scsiLimit-scsi, 0)
	default:
		result.Unknown = "the limit of the bus of disk " + example + " is unknown"
	}
}

var scsiHost = regexp.MustCompile(`/(host[0-9]+)/`)

// scsiDriver returns the name of the driver of the controller of a SCSI disk.
func (c *Counter) scsiDriver(name string) string {
	path, err := filepath.EvalSymlinks(filepath.Join(c.sys, "block", name, "device"))
	if err != nil {
		return ""
	}
	host := scsiHost.FindStringSubmatch(path + "/")
	if host == nil {
		return ""
	}
	return readLine(filepath.Join(c.sys, "class", "scsi_host", host[1], "proc_name"))
}

// readLine returns nothing for a file that is not there.
func readLine(path string) string {
	line, _ := disk.ReadLine(path)
	return line
}
