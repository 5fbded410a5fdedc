package guest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Disk is a volume and its connection to the guest.
type Disk struct {
	Volume string // the volume ID, which is also the serial, unless NoSerial is set
	Bus    string // virtio, scsi or nvme
	Bytes  int64  // size of the file, if Plug creates it
	Empty  bool   // the file has no byte
	LUN    int    // scsi: Nova takes target 0 and the next free number
	// At is the bus of a PCI device, with the slot there. If it is empty, QEMU chooses the slot, or Plug uses the next free root port.
	At, Slot string
	NoSerial bool
	File     string // the file with its data; a separate file if empty
	NBD      string // the socket of an NBD server that has the data, in place of a file
}

// ErrFull means that the machine has no slot for another disk.
var ErrFull = errors.New("no place is free")

// Plug attaches a disk in two steps as libvirt does: the image with its format, and then the device. The device has the name of the volume.
func (g *Guest) Plug(d Disk) error {
	file := d.File
	if file == "" && d.NBD == "" {
		file = g.FileOf(d.Volume)
		if d.Empty {
			d.Bytes = 0
		}
		if err := makeFile(file, d.Bytes); err != nil {
			return err
		}
	}
	device := map[string]any{"id": name(d.Volume), "drive": name(d.Volume) + "-format", "write-cache": "on"}
	if !d.NoSerial {
		device["serial"] = d.Volume
	}
	switch d.Bus {
	case "virtio":
		device["driver"] = "virtio-blk-pci"
	case "nvme":
		device["driver"] = "nvme"
		delete(device, "write-cache")
	case "scsi":
		device["driver"], device["bus"], device["channel"], device["scsi-id"], device["lun"] = "scsi-hd", "scsi.0", 0, 0, d.LUN
		if !d.NoSerial {
			device["device_id"] = d.Volume
		}
	default:
		return fmt.Errorf("there are no disks of bus %q", d.Bus)
	}
	if d.Bus != "scsi" {
		if err := g.place(d, device); err != nil {
			return err
		}
	}
	backend := map[string]any{"driver": "file", "node-name": name(d.Volume) + "-file", "filename": file, "discard": "unmap"}
	if d.NBD != "" {
		backend = map[string]any{"driver": "nbd", "node-name": name(d.Volume) + "-file", "server": map[string]any{"type": "unix", "path": d.NBD}}
	}
	for _, node := range []map[string]any{
		backend,
		{"driver": "raw", "node-name": name(d.Volume) + "-format", "file": name(d.Volume) + "-file", "discard": "unmap"},
	} {
		if err := g.monitor.do("blockdev-add", node, nil); err != nil {
			return err
		}
	}
	if err := g.monitor.do("device_add", device, nil); err != nil {
		return errors.Join(err, g.forget(d.Volume))
	}
	if port, ok := device["bus"].(string); ok && d.Bus != "scsi" {
		g.ports[port], g.disks[d.Volume] = true, port
	}
	return nil
}

// place chooses the bus and slot of a PCI device.
func (g *Guest) place(d Disk, device map[string]any) error {
	switch {
	case d.At != "":
		device["bus"], device["addr"] = d.At, d.Slot
	case g.Machine.Type == "q35":
		for _, port := range slices.SortedFunc(maps.Keys(g.ports), byNumber) {
			if !g.ports[port] {
				device["bus"] = port
				return nil
			}
		}
		return ErrFull
	}
	return nil
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	return 1
}

// Unplug requests the guest to release a disk and waits until it has.
func (g *Guest) Unplug(volume string) error {
	if err := g.monitor.do("device_del", map[string]any{"id": name(volume)}, nil); err != nil {
		return err
	}
	if err := g.monitor.deleted(name(volume)); err != nil {
		return err
	}
	if port, ok := g.disks[volume]; ok {
		g.ports[port] = false
		delete(g.disks, volume)
	}
	return g.forget(volume)
}

func (g *Guest) forget(volume string) error {
	return errors.Join(
		g.monitor.do("blockdev-del", map[string]any{"node-name": name(volume) + "-format"}, nil),
		g.monitor.do("blockdev-del", map[string]any{"node-name": name(volume) + "-file"}, nil))
}

// Grow makes a plugged disk larger, as libvirt's virDomainBlockResize.
func (g *Guest) Grow(volume string, bytes int64) error {
	return g.monitor.do("block_resize", map[string]any{"node-name": name(volume) + "-format", "size": bytes}, nil)
}

// GrowUnplugged makes the file of a disk larger that is not plugged.
func (g *Guest) GrowUnplugged(volume string, bytes int64) error {
	return os.Truncate(g.FileOf(volume), bytes)
}

// FileOf is the file that holds a volume's bytes on this machine.
func (g *Guest) FileOf(volume string) string { return filepath.Join(g.dir, volume+".raw") }

// name is the volume ID as a QEMU name. QEMU names begin with a letter, and those of nodes have at most 31 characters.
func name(volume string) string { return "v" + volume[len(volume)-12:] }

// Snapshot copies the bytes of a plugged disk into the file of another volume, as of one moment: the guest stands still meanwhile. What the
// guest has not written out is missing.
func (g *Guest) Snapshot(volume, to string) error {
	if err := g.monitor.do("stop", nil, nil); err != nil {
		return err
	}
	out, err := exec.Command("cp", "--sparse=always", g.FileOf(volume), g.FileOf(to)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	return errors.Join(err, g.monitor.do("cont", nil, nil))
}
