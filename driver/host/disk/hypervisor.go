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
	notADisk  Bus = "none" // the kernel made the device, or it is a floppy drive
	otherBus  Bus = "other"
)

// buses are the beginnings of the names that the kernel gives block devices.
var buses = []struct {
	bus   Bus
	names []string
}{
	{VirtioBlk, []string{"vd"}},
	{SCSI, []string{"sd"}},
	{NVMe, []string{"nvme"}},
	{cdROM, []string{"sr"}},
	{notADisk, []string{"loop", "ram", "zram", "fd", "dm-", "nbd", "rbd", "rnbd", "drbd", "ublk", "md"}},
}

// BusOf tells the bus of a disk by its name in sysfs.
func BusOf(name string) Bus {
	for _, b := range buses {
		if slices.ContainsFunc(b.names, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return b.bus
		}
	}
	return otherBus
}

// remotePath is in the sysfs path of a disk that this machine itself connected to. It matches an iSCSI session, a remote
// port of Fibre Channel, and a controller of NVMe over fabrics.
var remotePath = regexp.MustCompile(`/(session[0-9]+|rport-[^/]+|nvme-fabrics)/`)

// FromHypervisor reports whether the hypervisor provided the disk. Only such a disk can be a volume or the config drive.
// A pod may bring any other by a volume of type iscsi or fc, or by another CSI driver. It then chooses the serial, the
// label and the content.
//
// It is false for devices that the kernel makes, and for floppy drives, which take seconds to report that they are
// empty.
func (f *Finder) FromHypervisor(name string) bool {
	bus := BusOf(name)
	if bus == notADisk {
		return false
	}
	path, _ := os.Readlink(filepath.Join(f.options.SysRoot, "block", name)) // the kernel's own, to the place of the disk below devices
	if remotePath.MatchString(path) {
		return false
	}
	return bus != NVMe || f.onPCI(name)
}

// connected reports whether this machine connected the disk over a network.
func (f *Finder) connected(name string) bool {
	bus := BusOf(name)
	return (bus == SCSI || bus == NVMe) && !f.FromHypervisor(name)
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
