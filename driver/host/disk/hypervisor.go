package disk

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bus is how a disk is connected, as far as its name tells.
type Bus string

// The buses that matter here.
const (
	VirtioBlk Bus = "virtio"
	SCSI      Bus = "scsi"
	NVMe      Bus = "nvme"
	cdROM     Bus = "cdrom"
	otherBus  Bus = "other"
)

// buses are by the beginnings of the names that the kernel gives block devices.
var buses = map[string]Bus{"vd": VirtioBlk, "sd": SCSI, "nvme": NVMe, "sr": cdROM}

// BusOf tells the bus of a disk by its name in sysfs.
func BusOf(name string) Bus {
	for prefix, bus := range buses {
		if strings.HasPrefix(name, prefix) {
			return bus
		}
	}
	return otherBus
}

// madePlace matches the sysfs path of a disk that a program or a driver of other storage made on this machine. These are virtual/block, Ceph, VDUSE and
// vDPA, loops and simulators of SCSI, USB without hardware, and SCSI over TCP. A list of the places of hypervisors would leave the nodes of one that it
// lacks without volumes.
var madePlace = regexp.MustCompile(`^(\.\./)+devices/(virtual|rbd|pxd|vduse|vdpasim[^/]*|(tcm_loop|pseudo)_[0-9]+|platform/(host[0-9]+|(vhci|dummy)_hcd\.[^/]+|floppy\.[0-9]+))/`)

// remotePath is in the sysfs path of a disk that this machine itself connected to, also by an adapter on PCI. It matches an iSCSI session and a
// remote port of Fibre Channel.
var remotePath = regexp.MustCompile(`/(session[0-9]+|rport-[^/]+)/`)

// FromHypervisor reports whether the hypervisor provided the disk. Only such a disk can be a volume or the config drive.
// A pod may bring any other by a volume of type iscsi or fc, or by another CSI driver. It then chooses the serial, the
// label and the content.
//
// It is false for devices that the kernel makes, and for floppy drives, which take seconds to report that they are
// empty.
func (f *Finder) FromHypervisor(name string) bool {
	if BusOf(name) == NVMe { // with multipath its place is virtual, and its controllers tell
		return f.onPCI(name)
	}
	path, _ := os.Readlink(filepath.Join(f.options.SysRoot, "block", name)) // the kernel's own, to the place of the disk below devices
	return !madePlace.MatchString(path) && !remotePath.MatchString(path)
}

// connected reports whether a pod may have brought the disk, by its name one of the buses of hypervisors.
func (f *Finder) connected(name string) bool {
	return slices.Contains([]Bus{VirtioBlk, SCSI, NVMe}, BusOf(name)) && !f.FromHypervisor(name)
}

// onPCI reports whether every controller of an NVMe disk is a PCI device (Linux, drivers/nvme/host/sysfs.c, transport).
// Of a disk with multipath the file device is the subsystem, which has a link to each controller.
func (f *Finder) onPCI(name string) bool {
	device := filepath.Join(f.options.SysRoot, "block", name, "device")
	files, _ := filepath.Glob(filepath.Join(device, "nvme*", "transport"))
	files = append(files, filepath.Join(device, "transport"))
	var transports []string
	for _, file := range files {
		if content, err := f.options.ReadFile(file); err == nil {
			transports = append(transports, trimLine(content))
		}
	}
	return len(transports) > 0 && !slices.ContainsFunc(transports, func(t string) bool { return t != "pcie" })
}
