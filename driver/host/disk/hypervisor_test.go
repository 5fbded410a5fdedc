package disk

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The places of disks below /sys/devices, as Linux 6.1 has them. Block is between the place and the name.
var remotePlaces = map[string]struct {
	name, place string
	files       map[string]string
}{
	"iSCSI over TCP":           {"sdb", "platform/host2/session1/target2:0:0/2:0:0:0", nil},
	"iSCSI by an adapter":      {"sdb", "pci0000:00/0000:00:05.0/host3/session12/target3:0:0/3:0:0:1", nil},
	"Fibre Channel":            {"sdb", "pci0000:00/0000:00:05.0/host3/rport-3:0-1/target3:0:0/3:0:0:1", nil},
	"Fibre Channel of s390":    {"sdb", "css0/0.0.0010/0.0.f500/host0/rport-0:0-0/target0:0:0/0:0:0:1", nil},
	"NVMe over TCP":            {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "tcp\n"}},
	"NVMe over Fibre Channel":  {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "fc\n"}},
	"NVMe, paths over RDMA":    {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/nvme1/transport": "rdma\n"}},
	"NVMe, one path of two":    {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/nvme0/transport": "pcie\n", "device/nvme1/transport": "tcp\n"}},
	"NVMe without a transport": {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", nil},
	"a loop of fabrics":        {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "loop\n"}},

	"a loop of SCSI targets":      {"sdb", "tcm_loop_0/tcm_loop_adapter_0/host3/target3:0:1/3:0:1:0", nil},
	"scsi_debug":                  {"sdb", "pseudo_0/adapter0/host3/target3:0:0/3:0:0:0", nil},
	"a SCSI host without a place": {"sdb", "platform/host3/target3:0:0/3:0:0:0", nil},
	"USB over IP":                 {"sdb", "platform/vhci_hcd.0/usb3/3-1/3-1:1.0/host3/target3:0:0/3:0:0:0", nil},
	"USB made by a program":       {"sdb", "platform/dummy_hcd.0/usb3/3-1/3-1:1.0/host3/target3:0:0/3:0:0:0", nil},
	"SCSI somewhere virtual":      {"sdb", "virtual/other/host3/target3:0:0/3:0:0:0", nil},
	"VDUSE":                       {"vdc", "vduse/vdpa0/virtio3", nil},
	"a simulator of vDPA":         {"vdc", "vdpasim_blk/vdpa0/virtio3", nil},
	"a virtual vd":                {"vdc", "virtual", nil},
}

// plugRemote attaches a disk that a pod brought, with the serial of a volume.
func (b *fakeFinder) plugRemote(t *testing.T, name, place string, files map[string]string) {
	t.Helper()
	switch name[:2] {
	case "sd":
		b.plugSCSI(t, name, string(vol), Number{8, 16})
	case "vd":
		b.plug(t, name, serial, Number{254, 32})
	default:
		b.Sysfs(t, name, map[string]string{"dev": "259:3\n", "device/serial": serial + "\n", "device/subsysnqn": qemuPrefix + string(vol) + "\n"})
		b.device(name, Number{259, 3})
	}
	b.Sysfs(t, name, files)
	b.Place(t, name, place)
}

func TestADiskThatAPodConnectedIsNoVolume(t *testing.T) {
	t.Parallel()
	for name, c := range remotePlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			b.plugRemote(t, c.name, c.place, c.files)
			_, err := b.Find(t.Context(), vol)
			wantKind(t, err, volume.NotFound, c.name+" (not of the hypervisor")
			for _, e := range list(t, b) {
				if !e.Remote || e.Serial.IsVolume() {
					t.Errorf("want it listed as remote and as no volume, got %+v", e)
				}
			}
			b.plug(t, "vdb", serial, Number{254, 16}) // the disk of the volume arrives: no conflict
			d, err := b.Find(t.Context(), vol)
			if err != nil || d.Name != "vdb" {
				t.Errorf("want vdb, got %+v, %v", d, err)
			}
		})
	}
}

// Nova runs servers on KVM, Xen, Hyper-V, VMware and PowerVM, and on hardware by Ironic.
func TestTheDisksOfHypervisorsCount(t *testing.T) {
	t.Parallel()
	virtio := map[string]string{"serial": serial}
	for name, c := range map[string]struct {
		disk, place string
		files       map[string]string
	}{
		"virtio-blk":                   {"vdb", "pci0000:00/0000:00:05.0/virtio2", virtio},
		"virtio-blk behind a bridge":   {"vdb", "pci0000:00/0000:00:02.3/0000:04:00.0/virtio2", virtio},
		"virtio-blk of arm64":          {"vdb", "platform/4010000000.pcie/pci0000:00/0000:00:05.0/virtio2", virtio},
		"virtio-blk over MMIO":         {"vdb", "platform/a003e00.virtio_mmio/virtio4", virtio},
		"virtio-blk over MMIO, soc":    {"vdb", "platform/soc/10008000.virtio_mmio/virtio4", virtio},
		"virtio-blk over MMIO, ACPI":   {"vdb", "platform/LNRO0005:0f/virtio4", virtio},
		"virtio-blk over MMIO, named":  {"vdb", "virtio-mmio-cmdline/virtio-mmio.1/virtio1", virtio},
		"virtio-blk of s390":           {"vdb", "css0/0.0.0001/0.0.0002/virtio2", virtio},
		"virtio-scsi":                  {"sdb", "pci0000:00/0000:00:06.0/virtio3/host2/target2:0:0/2:0:0:3", nil},
		"virtio-scsi of s390":          {"sdb", "css0/0.0.0001/0.0.0002/virtio2/host0/target0:0:0/0:0:0:3", nil},
		"SCSI of POWER":                {"sdb", "vio/2000/host0/target0:0:0/0:0:0:0", nil},
		"SATA":                         {"sdb", "pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0", nil},
		"SATA of hardware without PCI": {"sdb", "platform/AMDI0600:00/ata1/host0/target0:0:0/0:0:0:0", nil},
		"USB":                          {"sdb", "pci0000:00/0000:00:01.2/usb1/1-1/1-1:1.0/host2/target2:0:0/2:0:0:0", nil},
		"SAS":                          {"sdb", "pci0000:80/0000:80:02.0/0000:82:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0", nil},
		"VMware PVSCSI":                {"sdb", "pci0000:00/0000:03:00.0/host0/target0:0:1/0:0:1:0", nil},
		"Hyper-V":                      {"sdb", "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/00000000-0001-8899-0000-000000000000/host1/target1:0:0/1:0:0:1", nil},
		"Hyper-V of Linux 6.4":         {"sdb", "platform/VMBUS:00/00000000-0001-8899-0000-000000000000/host1/target1:0:0/1:0:0:1", nil},
		"Hyper-V in a container":       {"sdb", "system/container/ACPI0004:00/MSFT1000:00/00000000-0001-8899-0000-000000000000/host1/target1:0:0/1:0:0:1", nil},
		"Xen SCSI":                     {"sdb", "vscsi-2064/host1/target1:0:0/1:0:0:1", nil},
		"Xen":                          {"xvdb", "vbd-51728", virtio}, // without a serial in truth, so it is a disk, but no volume
		"a bus that nobody knows":      {"vdb", "new-bus/1/virtio2", virtio},
		"NVMe":                         {"nvme1n1", "pci0000:00/0000:00:07.0/nvme/nvme1", map[string]string{"device/serial": serial, "device/transport": "pcie\n"}},
		"NVMe, multipath on":           {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/serial": serial, "device/nvme1/transport": "pcie\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeFinder(t)
			if c.disk == "sdb" {
				b.plugSCSI(t, c.disk, string(vol), Number{8, 16})
			} else {
				b.Sysfs(t, c.disk, map[string]string{"dev": "8:16\n"})
				b.Sysfs(t, c.disk, c.files)
				b.device(c.disk, Number{8, 16})
			}
			b.Place(t, c.disk, c.place)
			d, err := b.Find(t.Context(), vol)
			if err != nil || d.Name != c.disk {
				t.Errorf("want %s, got %+v, %v", c.disk, d, err)
			}
		})
	}
}

// Of these the name tells no bus. A reader of config drives opens every disk of the hypervisor.
func TestDisksOfOtherDriversAreNotOfTheHypervisor(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{
		"loop0": "virtual", "ram0": "virtual", "zram0": "virtual", "dm-0": "virtual", "md127": "virtual", "nbd0": "virtual", "drbd0": "virtual", "zd0": "virtual",
		"scinia": "virtual", "sp-0": "virtual", "bcache0": "virtual", "etherd!e1.0": "virtual", "nullb0": "virtual", "pxd!pxd1": "pxd/1", "rbd0": "rbd/0",
		"rnbd0": "virtual/rnbd-client/ctl", "ublkb0": "virtual/ublk-char/ublkc0", "fd0": "platform/floppy.0",
	} {
		b := newFakeFinder(t)
		b.Sysfs(t, name, map[string]string{"dev": "250:0\n", "serial": serial + "\n"})
		b.Place(t, name, place)
		if entries := list(t, b); len(entries) != 1 || !entries[0].Remote || entries[0].Serial.IsVolume() {
			t.Errorf("%s: got %+v", name, entries)
		}
	}
}

// Before Linux 5.15 nothing but the place tells a disk from another one with its name and number.
func TestADiskThatBecameOneOfAPodIsRefused(t *testing.T) {
	t.Parallel()
	b := newFakeFinder(t)
	b.plugSCSI(t, "sdb", string(vol), Number{8, 16})
	d, err := b.Find(t.Context(), vol)
	must(t, err)
	b.Place(t, "sdb", "platform/host2/session1/target2:0:0/2:0:0:0")
	wantKind(t, d.Verify(t.Context()), volume.Conflict)
}
