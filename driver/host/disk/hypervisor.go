package disk

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

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
	if hasPrefix(name, "loop", "ram", "zram", "fd", "dm-", "nbd", "rbd", "rnbd", "drbd", "ublk", "md") {
		return false
	}
	path, _ := os.Readlink(filepath.Join(f.sys, "block", name)) // the kernel's own, to the place of the disk below devices
	if remotePath.MatchString(path) {
		return false
	}
	return !hasPrefix(name, "nvme") || f.onPCI(name)
}

// connected reports whether this machine connected the disk over a network.
func (f *Finder) connected(name string) bool {
	return hasPrefix(name, "sd", "nvme") && !f.FromHypervisor(name)
}

// onPCI reports whether every controller of an NVMe disk is a PCI device (Linux, drivers/nvme/host/sysfs.c, transport).
// Of a disk with multipath the file device is the subsystem, which has a link to each controller.
func (f *Finder) onPCI(name string) bool {
	device := filepath.Join(f.sys, "block", name, "device")
	files, _ := filepath.Glob(filepath.Join(device, "nvme*", "transport"))
	files = append(files, filepath.Join(device, "transport"))
	var transports []string
	for _, file := range files {
		if content, err := f.readFile(file); err == nil {
			transports = append(transports, plainSerial(content))
		}
	}
	return len(transports) > 0 && !slices.ContainsFunc(transports, func(t string) bool { return t != "pcie" })
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
