package limit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// slots counts the hot-plug slots of the PCI bus that take a virtio disk.
type slots struct {
	Total    int
	Free     int
	Arriving int // with a virtio disk that the kernel has not named yet, or no longer names
}

// bridge is the type of a PCI bridge (PCI Express base specification, 7.5.3.2, "Device/Port Type").
type bridge int

// The types that matter here. plainBridge is a PCI bridge without PCI Express.
const (
	plainBridge    bridge = -1
	rootPort       bridge = 4
	downstreamPort bridge = 6
	toPCIBridge    bridge = 7
)

// pciSlots counts the hot-plug slots that take a virtio disk. These rules gave the exact number on QEMU's machine types
// pc and q35, on a full server and after a detach. The machines had root ports, a PCI bridge and a PCIe-to-PCI bridge:
//
//   - Below a root or downstream port only device 0 counts: the port has no other.
//   - If there is PCI Express, the root bus takes no hot-plug.
//   - Below a PCIe-to-PCI bridge no slot counts: the kernel lists 32, but libvirt puts no virtio disk there.
//   - Below a plain PCI bridge device 0 does not count: libvirt does not use it.
func (c *Counter) pciSlots() slots {
	bridges := c.bridges()
	express := false
	for _, kind := range bridges {
		express = express || kind != plainBridge
	}
	var s slots
	files, _ := filepath.Glob(filepath.Join(c.sys, "bus", "pci", "slots", "*", "address"))
	for _, file := range files {
		address := readLine(file) // domain:bus:device
		colon := strings.LastIndex(address, ":")
		if colon < 0 {
			continue
		}
		bus, device := address[:colon], address[colon+1:]
		kind, below := bridges[bus] // below: of a bridge
		switch {
		case !below && express,
			below && (kind == rootPort || kind == downstreamPort) && device != "00",
			below && kind != rootPort && kind != downstreamPort && kind != plainBridge,
			below && kind == plainBridge && device == "00":
			continue
		}
		s.Total++
		functions, _ := filepath.Glob(filepath.Join(c.sys, "bus", "pci", "devices", address+".*"))
		switch {
		case len(functions) == 0:
			s.Free++
		case slices.ContainsFunc(functions, namelessDisk):
			s.Arriving++
		}
	}
	return s
}

// namelessDisk reports whether a PCI device is a virtio disk (virtio 1.2, 4.1.2 and 5.2) without a block device.
func namelessDisk(device string) bool {
	if readLine(filepath.Join(device, "vendor")) != "0x1af4" || !slices.Contains([]string{"0x1001", "0x1042"}, readLine(filepath.Join(device, "device"))) {
		return false
	}
	disks, _ := filepath.Glob(filepath.Join(device, "virtio*", "block", "*"))
	return len(disks) == 0
}

// bridges maps each bus below a bridge to the type of the bridge.
func (c *Counter) bridges() map[string]bridge {
	bridges := map[string]bridge{}
	classes, _ := filepath.Glob(filepath.Join(c.sys, "bus", "pci", "devices", "*", "class"))
	for _, class := range classes {
		if !strings.HasPrefix(readLine(class), "0x0604") {
			continue
		}
		device := filepath.Dir(class)
		buses, _ := filepath.Glob(filepath.Join(device, "pci_bus", "*"))
		config, _ := os.ReadFile(filepath.Join(device, "config"))
		for _, bus := range buses {
			bridges[filepath.Base(bus)] = bridgeKind(config)
		}
	}
	return bridges
}

// bridgeKind walks the capability list in the configuration space of a device to that of PCI Express.
func bridgeKind(config []byte) bridge {
	const list, first, expressID, longest = 0x34, 0x40, 0x10, 48
	if len(config) < 256 {
		return plainBridge
	}
	at := int(config[list])
	for range longest { // so that a circular list ends
		if at < first || at > 0xFC {
			return plainBridge
		}
		if config[at] == expressID {
			return bridge(config[at+2] >> 4)
		}
		at = int(config[at+1])
	}
	return plainBridge
}
