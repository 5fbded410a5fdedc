//go:build vm

package vm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

func TestTheLimitIsWhatCanReallyBePlugged(t *testing.T) {
	const native = "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off" // the hot-plug of PCI Express instead of that of ACPI
	type machine struct {
		name    string
		machine guest.Machine
		bridge  string // the bridge to use when the root bus is full
	}
	machines := []machine{
		{"pc", guest.Machine{}, ""},
		{"pc with a PCI bridge", guest.Machine{More: []string{"-device", "pci-bridge,chassis_nr=9,id=bridge"}}, "bridge"},
		{"q35 with 1 free port", guest.Machine{Type: "q35", Ports: 1}, ""},
		{"q35 with 6 free ports", guest.Machine{Type: "q35", Ports: 6}, ""},
		{"q35 with 24 free ports", guest.Machine{Type: "q35", Ports: 24}, ""},
		{"q35 with 6 free ports, native hot-plug", guest.Machine{Type: "q35", Ports: 6, More: []string{"-global", native}}, ""},
		{"q35 with 3 free ports and a PCIe-to-PCI bridge", guest.Machine{Type: "q35", Ports: 3, More: []string{
			"-device", "pcie-root-port,id=legacy,bus=pcie.0,chassis=60,port=60,addr=0x10", "-device", "pcie-pci-bridge,bus=legacy",
		}}, ""},
	}
	for _, kernel := range strings.Split(*kernels, ",")[1:] { // which slots the kernel shows
		machines = append(machines, machine{"pc, " + kernel, guest.Machine{Kernel: kernel}, ""},
			machine{"q35 with 6 free ports, " + kernel, guest.Machine{Kernel: kernel, Type: "q35", Ports: 6}, ""})
	}
	for _, c := range machines {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := boot(t, c.machine)
			n.withoutReserve(t)
			limit := n.limit(t)
			var plugged []string
			for volume, err := n.plugNext(t, c.bridge); err == nil; volume, err = n.plugNext(t, c.bridge) {
				plugged = append(plugged, volume)
				if got := n.limit(t); got != limit {
					t.Errorf("want the limit %d whatever is attached, got %d with %d volumes", limit, got, len(plugged))
				}
			}
			if int64(len(plugged)) != limit {
				t.Errorf("want as many volumes as could be plugged, %d, got the limit %d", len(plugged), limit)
			}
			if len(plugged) > 0 {
				n.unplug(t, plugged[len(plugged)-1])
			}
			if got := n.limit(t); got != limit {
				t.Errorf("want the limit %d after a detach, got %d", limit, got)
			}
			recordLimit(t, n, c.name, "virtio", limit, fmt.Sprintf("%d, then no place is free", len(plugged)))
		})
	}
}

func TestAServerOnSCSITakesAsManyVolumesAsIsSaid(t *testing.T) {
	n := boot(t, guest.Machine{Bus: "scsi"})
	n.withoutReserve(t)
	limit := n.limit(t)
	for i := range limit {
		n.seen(t, guest.Disk{Volume: newVolume(), Bus: "scsi", LUN: int(i) + 1, Bytes: 16 << 20})
	}
	if got := n.limit(t); got != limit {
		t.Errorf("want the limit %d when that many are attached, got %d", limit, got)
	}
	recordLimit(t, n, "pc", "scsi", limit, fmt.Sprintf("%d, more would fit", limit))
}

func recordLimit(t *testing.T, n *node, machine, bus string, limit int64, plugged string) {
	record(t, "Attach limit, without a reserve", "Linux | machine | disks | limit | plugged and seen", n.kernel, machine, bus, limit, plugged)
}

// withoutReserve starts the driver with the highest limit that the machine allows. The driver reads the server ID from the hardware only: the
// guest has no metadata service, and the driver would try it each time.
func (n *node) withoutReserve(t *testing.T) {
	t.Helper()
	n.sh(t, `printf '[BlockStorage]\nnode-volume-attach-reserve=0\n[Metadata]\nsearch-order=dmi\n' > `+cloudConf)
	n.startDriver(t, nil, "--with-topology=false")
}

// limit calls NodeGetInfo as kubelet does. The server ID is that of the hardware here.
func (n *node) limit(t *testing.T) int64 {
	t.Helper()
	info, err := n.NodeGetInfo(n.ctx(t), &csi.NodeGetInfoRequest{})
	must(t, "ask for the limit", err)
	if info.GetNodeId() != guest.ServerID {
		t.Errorf("want the server's id, %s, got %s", guest.ServerID, info.GetNodeId())
	}
	return info.GetMaxVolumesPerNode()
}

// plugNext plugs a virtio disk into the next free slot, on the bridge if the root bus is full. libvirt leaves slot 0 of a bridge free.
func (n *node) plugNext(t *testing.T, bridge string) (volume string, err error) {
	t.Helper()
	d := guest.Disk{Volume: newVolume(), Bus: "virtio", Bytes: 16 << 20}
	err = n.Plug(d)
	for slot := 1; err != nil && bridge != "" && slot < 32; slot++ {
		d.At, d.Slot = bridge, fmt.Sprintf("0x%x", slot)
		err = n.Plug(d)
	}
	if err == nil {
		n.found(t, d)
	}
	return d.Volume, err
}

// seen plugs a disk and wants the driver to find it: the guest does not see every disk that QEMU accepts.
func (n *node) seen(t *testing.T, d guest.Disk) {
	t.Helper()
	must(t, "plug", n.Plug(d))
	n.found(t, d)
}

func (n *node) found(t *testing.T, d guest.Disk) {
	t.Helper()
	must(t, "find a disk that was plugged", n.stage(n.ctx(t), claim{id: d.Volume}))
}
