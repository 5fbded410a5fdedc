package disk

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The places of disks below /sys/devices, as Linux 6.1 has them.
var remotePlaces = map[string]struct {
	name, place string
	files       map[string]string
}{
	"iSCSI over TCP":           {"sdb", "platform/host2/session1/target2:0:0/2:0:0:0", nil},
	"iSCSI by an adapter":      {"sdb", "pci0000:00/0000:00:05.0/host3/session12/target3:0:0/3:0:0:1", nil},
	"Fibre Channel":            {"sdb", "pci0000:00/0000:00:05.0/host3/rport-3:0-1/target3:0:0/3:0:0:1", nil},
	"NVMe over TCP":            {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "tcp\n"}},
	"NVMe over Fibre Channel":  {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "fc\n"}},
	"NVMe, paths over RDMA":    {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/nvme1/transport": "rdma\n"}},
	"NVMe, one path of two":    {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/nvme0/transport": "pcie\n", "device/nvme1/transport": "tcp\n"}},
	"NVMe without a transport": {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", nil},
	"a loop of fabrics":        {"nvme1n1", "virtual/nvme-fabrics/ctl/nvme1", map[string]string{"device/transport": "loop\n"}},
}

// plugRemote attaches a disk that a pod brought, with the serial of a volume.
func (b *fakeFinder) plugRemote(t *testing.T, name, place string, files map[string]string) {
	t.Helper()
	if name == "sdb" {
		b.plugSCSI(t, name, string(vol), Number{8, 16})
	} else {
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

func TestTheDisksOfHypervisorsCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disk, place string
		files       map[string]string
	}{
		"virtio-blk":           {"vdb", "pci0000:00/0000:00:05.0/virtio2", map[string]string{"serial": serial}},
		"virtio-scsi":          {"sdb", "pci0000:00/0000:00:06.0/virtio3/host2/target2:0:0/2:0:0:3", nil},
		"VMware PVSCSI":        {"sdb", "pci0000:00/0000:03:00.0/host0/target0:0:1/0:0:1:0", nil},
		"Hyper-V":              {"sdb", "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/00000000-0001-8899-0000-000000000000/host1/target1:0:0/1:0:0:1", nil},
		"NVMe":                 {"nvme1n1", "pci0000:00/0000:00:07.0/nvme/nvme1", map[string]string{"device/serial": serial, "device/transport": "pcie\n"}},
		"NVMe, multipath on":   {"nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", map[string]string{"device/serial": serial, "device/nvme1/transport": "pcie\n"}},
		"virtio-blk over MMIO": {"vdb", "platform/a003e00.virtio_mmio/virtio4", map[string]string{"serial": serial}},
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
