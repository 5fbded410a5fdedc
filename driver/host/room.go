package host

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// SCSIBound is how many disks a server with a virtio-scsi controller is taken to hold. The controller has no bound that the server
// could read; 300 disks were attached to one and seen, at about a third of a MiB of the kernel's memory each.
const SCSIBound = 128

// Room is how many volumes fit on this server, term by term. Attached, Arriving and Free change together while a volume comes or
// goes; their sum does not.
type Room struct {
	Bus      string // where the next volume will come: virtio or scsi; empty when that is unknown
	Attached int    // volumes that are here, without the foreign ones
	Arriving int    // virtio disks that the kernel has not named yet, or not any more
	Free     int    // hot-plug slots, or what is left of SCSIBound
	Foreign  int    // volumes that are here and are not the driver's: what this machine runs from, and those named
	Unknown  string // why nothing is known; empty when it is
}

// Volumes is the sum: how many volumes of the driver's fit, those that are here counted.
func (r Room) Volumes() int { return r.Attached + r.Arriving + r.Free }

// Room counts. foreign names volumes that others attached to this server. A disk that comes or goes while sysfs is read is in none of
// the terms or in two, so what counts is what two readings agree on. A disk that does not answer is what it was: it has not left its
// place, and the number would fall for nothing.
func (h *Host) Room(ctx context.Context, foreign []volume.ID) Room {
	const most = 5
	last := h.count(ctx, foreign)
	for range most {
		next := h.count(ctx, foreign)
		if next == last {
			break
		}
		last = next
	}
	return last
}

func (h *Host) count(ctx context.Context, foreign []volume.ID) Room {
	names, said, err := h.hear(ctx)
	if err != nil {
		return Room{Unknown: err.Error()}
	}
	system := h.systemDisks(names)
	var r Room
	var root, first string // a disk this machine runs from, a volume
	scsi := 0
	for _, name := range names {
		if busOf(name) == "scsi" {
			scsi++
		}
		runs := slices.Contains(system, name)
		if runs && root == "" {
			root = name
		}
		l := said[name]
		if !l.taken(runs) {
			continue
		}
		named := slices.ContainsFunc(foreign, func(id volume.ID) bool { _, ok := l.isOf(id); return ok })
		if runs || named {
			r.Foreign++
			continue
		}
		r.Attached++
		if first == "" {
			first = name
		}
	}
	// Nova gives every disk of a server the bus of its image's property hw_disk_bus, so the root disk tells it.
	hint := or(root, first)
	switch busOf(hint) {
	case "virtio":
		pci := h.pciSlots()
		if pci.Total == 0 {
			r.Unknown = "the kernel shows no hot-plug slots of the PCI bus"
			break
		}
		r.Bus, r.Free, r.Arriving = "virtio", pci.Free, pci.Arriving
	case "scsi":
		if driver := h.scsiDriver(hint); driver != "virtio_scsi" {
			r.Unknown = "nothing is known of the SCSI controller " + driver + " of disk " + hint
			break
		}
		r.Bus, r.Free = "scsi", max(SCSIBound-scsi, 0)
	case "":
		r.Unknown = "neither a disk that this machine runs from nor a volume is seen"
	default:
		r.Unknown = "nothing is known of the bus of disk " + hint
	}
	return r
}

func busOf(disk string) string {
	switch {
	case disk == "":
		return ""
	case strings.HasPrefix(disk, "vd"):
		return "virtio"
	case strings.HasPrefix(disk, "sd"):
		return "scsi"
	}
	return "other"
}

var scsiHost = regexp.MustCompile(`/(host[0-9]+)/`)

// scsiDriver names the driver of the controller that a SCSI disk is at.
func (h *Host) scsiDriver(disk string) string {
	path, err := filepath.EvalSymlinks(filepath.Join(h.sys, "block", disk, "device"))
	if err != nil {
		return ""
	}
	host := scsiHost.FindStringSubmatch(path + "/")
	if host == nil {
		return ""
	}
	return readLine(filepath.Join(h.sys, "class", "scsi_host", host[1], "proc_name"))
}

// systemDisks lists the disks that this machine runs from, as far as this mount namespace shows them: what the root directory and
// kubelet's lie on, and what a directory was bound from into this container. What is mounted below kubelet's is pods', whole or in part:
// a subvolume of btrfs, a directory of a volume, a file that is another volume.
func (h *Host) systemDisks(names []string) []string {
	table, err := h.mounts()
	if err != nil {
		return nil
	}
	byNumber := h.blockNumbers(names)
	var system []string
	for _, m := range table {
		if strings.Contains(m.Path, "/kubelet/") || strings.Contains(m.Path, "/volume-subpaths/") {
			continue // a pod's: a part of a volume is mounted like a part of the machine's own disk
		}
		bound := m.Root != "/" && m.FSType != "devtmpfs"
		if m.Path != "/" && !bound && !strings.HasSuffix(m.Path, "/kubelet") {
			continue
		}
		name, ok := byNumber[m.Device.String()]
		if !ok {
			name = filepath.Base(m.Source) // btrfs has a device number of its own
		}
		system = append(system, h.below(name, names)...)
	}
	slices.Sort(system)
	return slices.Compact(system)
}

// blockNumbers gives the name of the disk or partition that has a device number.
func (h *Host) blockNumbers(disks []string) map[string]string {
	numbers := map[string]string{}
	for _, disk := range disks {
		for _, name := range append([]string{""}, h.partitions(disk)...) {
			if number := h.attribute(disk, filepath.Join(name, "dev")); number != "" {
				numbers[number] = or(name, disk)
			}
		}
	}
	return numbers
}

// below gives the disks that a disk, a partition or a mapping of the device mapper lies on.
func (h *Host) below(name string, disks []string) []string {
	const deepest = 8
	var found []string
	level := []string{name}
	for range deepest {
		var next []string
		for _, n := range level {
			disk := n
			if !slices.Contains(disks, n) {
				i := slices.IndexFunc(disks, func(d string) bool { return slices.Contains(h.partitions(d), n) })
				if i < 0 {
					continue
				}
				disk = disks[i]
			}
			under, _ := os.ReadDir(filepath.Join(h.sys, "block", disk, "slaves"))
			if len(under) == 0 {
				found = append(found, disk)
			}
			for _, u := range under {
				next = append(next, u.Name())
			}
		}
		level = next
	}
	return found
}
