package limit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// pci is the PCI bus of a fake machine.
type pci struct {
	t   *testing.T
	b   *fakeServer
	dir string
}

func newPCI(t *testing.T, b *fakeServer) pci {
	p := pci{t, b, filepath.Join(b.Sys, "bus", "pci")}
	must(t, os.MkdirAll(filepath.Join(p.dir, "slots"), 0o755))
	must(t, os.MkdirAll(filepath.Join(p.dir, "devices"), 0o755))
	return p
}

func (p pci) slot(name, address string) { p.file("slots/"+name+"/address", address+"\n") }

func (p pci) file(path, content string) {
	p.t.Helper()
	path = filepath.Join(p.dir, path)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(p.t, os.WriteFile(path, []byte(content), 0o600))
}

func (p pci) device(address, vendor, device, class string) {
	for file, content := range map[string]string{"vendor": vendor, "device": device, "class": class} {
		p.file("devices/"+address+"/"+file, content+"\n")
	}
}

// bridge puts a bridge at address, above bus. A kind below 0 is one without PCI Express.
func (p pci) bridge(address, bus string, kind bridge) {
	p.device(address, "0x1b36", "0x000c", "0x060400")
	must(p.t, os.MkdirAll(filepath.Join(p.dir, "devices", address, "pci_bus", bus), 0o755))
	config := make([]byte, 256)
	config[0x34] = 0x40
	config[0x40], config[0x41] = 0x0d, 0x54 // a capability before
	if kind >= 0 {
		config[0x54], config[0x56] = 0x10, byte(kind)<<4|2
	}
	p.file("devices/"+address+"/config", string(config))
}

// plug gives a slot a virtio disk. Without a name the kernel has not got so far.
func (p pci) plug(address, name, serial string, minor uint32) {
	p.device(address, "0x1af4", "0x1042", "0x010000")
	if name == "" {
		return
	}
	must(p.t, os.MkdirAll(filepath.Join(p.dir, "devices", address, "virtio9", "block", name), 0o755))
	p.b.Sysfs(p.t, name, map[string]string{"serial": serial, "dev": fmt.Sprintf("254:%d\n", minor)})
}

func (p pci) unplug(address, name string) {
	if name != "" {
		must(p.t, os.RemoveAll(filepath.Join(p.b.Sys, "block", name)))
		must(p.t, os.RemoveAll(filepath.Join(p.dir, "devices", address, "virtio9", "block", name)))
		return
	}
	must(p.t, os.RemoveAll(filepath.Join(p.dir, "devices", address)))
}

// pc is QEMU's machine type pc as Nova uses it: slots 3 to 31 of the root bus, of which four are used.
func pc(t *testing.T, b *fakeServer) pci {
	p := newPCI(t, b)
	p.device("0000:00:01.0", "0x8086", "0x7000", "0x060100") // PIIX has no slot
	for n := 3; n < 32; n++ {
		p.slot(fmt.Sprint(n), fmt.Sprintf("0000:00:%02x", n))
	}
	p.device("0000:00:03.0", "0x1af4", "0x1000", "0x020000")
	p.plug("0000:00:04.0", "vda", "", 0)
	p.device("0000:00:05.0", "0x1af4", "0x1005", "0x00ff00")
	p.device("0000:00:06.0", "0x1af4", "0x1002", "0x00ff00")
	p.b.add(Entry{Device: num(254, 1), Path: "/", FSType: "ext4", Source: "/dev/vda1", Options: []string{"rw"}})
	b.Sysfs(t, "vda", map[string]string{"vda1/partition": "1\n", "vda1/dev": "254:1\n"})
	return p
}

// q35 has one root port for each of used and free.
func q35(t *testing.T, b *fakeServer, used, free int) pci {
	p := newPCI(t, b)
	p.device("0000:00:00.0", "0x8086", "0x29c0", "0x060000")
	for n := range used + free {
		bus := fmt.Sprintf("0000:%02x", n+1)
		p.bridge(fmt.Sprintf("0000:00:02.%d", n), bus, rootPort)
		p.slot(fmt.Sprintf("0-%d", n), bus+":00")
		switch {
		case n == 0:
			p.plug(bus+":00.0", "vda", "", 0)
		case n < used:
			p.device(bus+":00.0", "0x1af4", "0x1041", "0x020000")
		}
	}
	p.b.add(Entry{Device: num(254, 0), Path: "/", FSType: "ext4", Source: "/dev/vda", Options: []string{"rw"}})
	return p
}

func TestCountOfEachMachineType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(*testing.T, *fakeServer)
		want int // measured: see the rule's comment
	}{
		{"pc", func(t *testing.T, b *fakeServer) { pc(t, b) }, 25},
		{"pc with a PCI bridge", func(t *testing.T, b *fakeServer) {
			p := pc(t, b)
			p.bridge("0000:00:07.0", "0000:01", plainBridge)
			for n := range 32 {
				p.slot(fmt.Sprintf("1-%d", n), fmt.Sprintf("0000:01:%02x", n))
			}
		}, 24 + 31},
		{"q35 with 6 free root ports", func(t *testing.T, b *fakeServer) { q35(t, b, 5, 6) }, 6},
		{"q35 with 24 free root ports", func(t *testing.T, b *fakeServer) { q35(t, b, 5, 24) }, 24},
		{"q35 with 3 free ports and a PCIe-to-PCI bridge", func(t *testing.T, b *fakeServer) {
			p := q35(t, b, 5, 3)
			p.bridge("0000:00:1e.0", "0000:20", toPCIBridge)
			for n := range 32 {
				p.slot(fmt.Sprintf("32-%d", n), fmt.Sprintf("0000:20:%02x", n))
			}
		}, 3},
		{"q35, other devices of a port and the root bus", func(t *testing.T, b *fakeServer) {
			p := q35(t, b, 5, 2)
			p.slot("9", "0000:01:01")
			p.slot("10", "0000:00:1f")
		}, 2},
		{"below a downstream port", func(t *testing.T, b *fakeServer) {
			p := q35(t, b, 5, 2)
			p.bridge("0000:07:00.0", "0000:30", downstreamPort)
			p.slot("11", "0000:30:00")
		}, 2}, // one port is the bridge's
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			c.make(t, b)
			r := b.Count(t.Context(), nil)
			if r.Volumes() != c.want || r.Bus != "virtio" || r.Unknown != "" {
				t.Errorf("want capacity for %d virtio disks, got %+v", c.want, r)
			}
		})
	}
}

func TestTheCountIsStableWhileVolumesComeAndGo(t *testing.T) {
	t.Parallel()
	b := newFakeServer(t)
	p := pc(t, b)
	want := b.Count(t.Context(), nil).Volumes()
	hold := func(moment string) {
		t.Helper()
		if r := b.Count(t.Context(), nil); r.Volumes() != want {
			t.Errorf("%s: want capacity for %d as before, got %+v", moment, want, r)
		}
	}
	var all []string
	for n := 7; n < 32; n++ {
		address, name := fmt.Sprintf("0000:00:%02x.0", n), fmt.Sprintf("vd%c", 'b'+n-7)
		p.plug(address, "", "", 0)
		hold("on the bus, no disk yet")
		p.plug(address, name, fmt.Sprintf("%08d-3d4e-4f50-8", n), uint32(16*n))
		hold("there")
		all = append(all, address, name)
	}
	if r := b.Count(t.Context(), nil); r.Attached != 25 || r.Free != 0 {
		t.Errorf("want the server full, got %+v", r)
	}
	for i := 0; i < len(all); i += 2 {
		p.unplug(all[i], all[i+1])
		hold("no disk any more, still on the bus")
		p.unplug(all[i], "")
		hold("gone")
	}
}

// The kernel shows a disk below its PCI device a moment before it is in /sys/block: a reader of /sys/block finds it in
// neither directory.
func TestADiskThatComesWhileTheDriverCountsIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newFakeServer(t)
	p := pc(t, b)
	want := b.Count(t.Context(), nil).Volumes()
	p.plug("0000:00:07.0", "", "", 0)
	must(t, os.MkdirAll(p.dir+"/devices/0000:00:07.0/virtio9/block/vdb", 0o755))
	gate := filepath.Join(b.Sys, "block", "vda", "serial") // read after the list of disks, and held until vdb is there
	must(t, os.Remove(gate))
	must(t, unix.Mkfifo(gate, 0o600))
	came := make(chan error, 1)
	go func() {
		hold, err := os.OpenFile(gate, os.O_WRONLY, 0)
		p.plug("0000:00:07.0", "vdb", serial, 16)
		came <- errors.Join(err, os.Remove(gate), os.WriteFile(gate, nil, 0o600), hold.Close())
	}()
	got := b.Count(t.Context(), nil)
	must(t, <-came)
	if got.Volumes() != want || got.Attached != 1 {
		t.Errorf("want capacity for %d as before, got %+v", want, got)
	}
}

func TestForeignVolumesAreNotCounted(t *testing.T) {
	t.Parallel()
	const root, database volume.ID = "11111111-3d4e-4f50-8a6b-7c8d9e0f1a2b", "22222222-3d4e-4f50-8a6b-7c8d9e0f1a2b"
	for _, c := range []struct {
		name  string
		mount Entry
	}{
		{"the root directory", Entry{Device: num(254, 1), Path: "/", Source: "/dev/vda1"}},
		{"bound into the container", Entry{Device: num(254, 1), Root: "/var/lib/kubelet", Path: "/var/lib/kubelet", Source: "/dev/vda1"}},
		{"kubelet's own", Entry{Device: num(254, 1), Path: "/data/kubelet", Source: "/dev/vda1"}},
		{"btrfs", Entry{Device: num(0, 27), Root: "/@", Path: "/var/lib/kubelet", FSType: "btrfs", Source: "/dev/vda1"}},
		{"LVM", Entry{Device: num(253, 0), Path: "/", Source: "/dev/mapper/vg-root"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			p := pc(t, b)
			p.plug("0000:00:04.0", "vda", string(root[:20]), 0)
			p.plug("0000:00:07.0", "vdb", string(database[:20]), 16)
			p.plug("0000:00:08.0", "vdc", serial, 32)
			b.Sysfs(t, "dm-0", map[string]string{"dev": "253:0\n", "slaves/vda1/partition": "1\n"})
			b.setMounts()
			if c.mount.FSType == "" {
				c.mount.FSType = "ext4"
			}
			c.mount.Options = []string{"rw"}
			b.add(c.mount)
			// A volume of the driver's and a part of it, as kubelet shows it to a container: both are no reason to
			// think it foreign.
			b.add(Entry{Device: num(254, 32), Path: "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount", FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
			b.add(Entry{Device: num(254, 32), Root: "/sub", Path: "/var/lib/kubelet/pods/1/volume-subpaths/pv/c/0", FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
			want := Capacity{Bus: "virtio", Attached: 1, Free: 23, Foreign: 2}
			if diff := cmp.Diff(want, b.Count(t.Context(), []volume.ID{database, "short"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Two drivers on one node: the scheduler counts the volumes of this one alone against its limit, and those of the other take slots, too.
func TestVolumesThatAnotherDriverStagedAreForeign(t *testing.T) {
	t.Parallel()
	const own, other = "/var/lib/kubelet/plugins/kubernetes.io/csi/cinder-csi.io/6f1e/globalmount", "/var/lib/kubelet/plugins/kubernetes.io/csi/cinder.csi.openstack.org/6f1e/globalmount"
	for name, c := range map[string]struct {
		driver, path string
		want         Capacity
	}{
		"another driver":            {"cinder-csi.io", other, Capacity{Bus: "virtio", Free: 24, Foreign: 1}},
		"this driver":               {"cinder-csi.io", own, Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"an older kubelet":          {"cinder-csi.io", "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-1/globalmount", Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"a mount in the volume":     {"cinder-csi.io", other + "/data", Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"a pod":                     {"cinder-csi.io", "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount", Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"a driver without a name":   {"", other, Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"kubelet somewhere else":    {"cinder-csi.io", strings.Replace(other, "/var/lib/kubelet", "/data/k0s", 1), Capacity{Bus: "virtio", Free: 24, Foreign: 1}},
		"the volume is not mounted": {"cinder-csi.io", "", Capacity{Bus: "virtio", Attached: 1, Free: 24}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			b.driver = c.driver
			p := pc(t, b)
			p.plug("0000:00:04.0", "vda", "", 0)
			p.plug("0000:00:07.0", "vdb", serial, 16)
			b.setMounts(Entry{Device: num(254, 1), Path: "/", FSType: "ext4", Source: "/dev/vda1", Options: []string{"rw"}})
			if c.path != "" {
				b.add(Entry{Device: num(254, 16), Path: c.path, FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
			}
			if diff := cmp.Diff(c.want, b.Count(t.Context(), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without the mount table, every volume on the server looks like one of this driver.
func TestTheCountIsKeptWhileTheMountTableCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newFakeServer(t)
	b.driver = "cinder-csi.io"
	p := pc(t, b)
	p.plug("0000:00:07.0", "vdb", serial, 16)
	p.plug("0000:00:08.0", "vdc", otherSerial, 32)
	table := b.Path("proc", "self", "mountinfo")
	content, err := os.ReadFile(table)
	must(t, err)
	must(t, os.Remove(table))
	if r := b.Count(t.Context(), nil); !strings.Contains(r.Unknown, "mount table") {
		t.Errorf("want no answer at first, got %+v", r)
	}
	must(t, os.WriteFile(table, content, 0o600))
	b.add(Entry{Device: num(254, 16), Path: "/var/lib/kubelet/plugins/kubernetes.io/csi/cinder.csi.openstack.org/6f1e/globalmount", FSType: "ext4", Source: "/dev/vdb"})
	want := Capacity{Bus: "virtio", Attached: 1, Free: 23, Foreign: 1}
	for _, readable := range []bool{true, false} {
		if !readable {
			must(t, os.Remove(table))
		}
		got := b.Count(t.Context(), nil)
		if stale := strings.Contains(got.Stale, "mount table"); stale == readable {
			t.Errorf("readable %t: got the reason %q for an earlier answer", readable, got.Stale)
		}
		got.Stale = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("readable %t (-want +got):\n%s", readable, diff)
		}
	}
}

// The device number of a share or of btrfs is no disk's. Only btrfs has the disk as its source; that of a share is what its owner calls it.
func TestASourceNamesADiskForBtrfsAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mount Entry
		want  Capacity
	}{
		"a share": {Entry{Path: "/var/lib/kubelet/plugins/kubernetes.io/csi/smb.csi.k8s.io/6f1e/globalmount", FSType: "cifs", Source: "//nas/vdb"}, Capacity{Bus: "virtio", Attached: 1, Free: 24}},
		"btrfs":   {Entry{Path: "/var/lib/kubelet/plugins/kubernetes.io/csi/other.csi.k8s.io/6f1e/globalmount", FSType: "btrfs", Source: "/dev/vdb"}, Capacity{Bus: "virtio", Free: 24, Foreign: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			b.driver = "cinder-csi.io"
			p := pc(t, b)
			p.plug("0000:00:04.0", "vda", "", 0)
			p.plug("0000:00:07.0", "vdb", serial, 16)
			b.setMounts(Entry{Device: num(254, 1), Path: "/", FSType: "ext4", Source: "/dev/vda1", Options: []string{"rw"}})
			c.mount.Device, c.mount.Options = num(0, 60), []string{"rw"}
			b.add(c.mount)
			if diff := cmp.Diff(c.want, b.Count(t.Context(), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVolumeOfWhichAPartIsMountedIsCounted(t *testing.T) {
	t.Parallel()
	const kubelet = "/var/lib/kubelet"
	for name, m := range map[string]Entry{
		"a subvolume of btrfs":         {Device: num(0, 51), Root: "/data", Path: kubelet + "/plugins/kubernetes.io/csi/x/0123/globalmount", FSType: "btrfs", Source: "/dev/vdb"},
		"a directory":                  {Device: num(254, 16), Root: "/disks", Path: kubelet + "/pods/1/volumes/kubernetes.io~csi/pv/mount", FSType: "ext4", Source: "/dev/vdb"},
		"a file, as KubeVirt's":        {Device: num(254, 16), Root: "/disk.img", Path: kubelet + "/pods/1/volumes/kubernetes.io~empty-dir/x/disk.img", FSType: "ext4", Source: "/dev/vdb"},
		"kubelet in another directory": {Device: num(254, 16), Root: "/disks", Path: "/data/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount", FSType: "ext4", Source: "/dev/vdb"},
		"a volume with a directory":    {Device: num(254, 16), Path: kubelet + "/pods/1/volumes/kubernetes.io~csi/pv/mount/kubelet", FSType: "ext4", Source: "/dev/vdb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			p := pc(t, b)
			p.plug("0000:00:07.0", "vdb", serial, 16)
			b.add(Entry{Device: num(254, 1), Root: kubelet, Path: kubelet, FSType: "ext4", Source: "/dev/vda1", Options: []string{"rw"}})
			m.Options = []string{"rw"}
			b.add(m)
			if diff := cmp.Diff(Capacity{Bus: "virtio", Attached: 1, Free: 24}, b.Count(t.Context(), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountOfEachBus(t *testing.T) {
	t.Parallel()
	scsi := func(t *testing.T, b *fakeServer, driver string) {
		must(t, os.MkdirAll(filepath.Join(b.Sys, "devices", "virtio2", "host0", "target0:0:0", "0:0:0:0"), 0o755))
		b.Sysfs(t, "sda", map[string]string{"dev": "8:0\n"})
		must(t, os.Symlink(filepath.Join(b.Sys, "devices/virtio2/host0/target0:0:0/0:0:0:0"), filepath.Join(b.Sys, "block", "sda", "device")))
		host := filepath.Join(b.Sys, "class", "scsi_host", "host0")
		must(t, os.MkdirAll(host, 0o755))
		must(t, os.WriteFile(filepath.Join(host, "proc_name"), []byte(driver+"\n"), 0o600))
		b.Sysfs(t, "sdb", map[string]string{"device/vpd_pg80": page80(string(vol)), "dev": "8:16\n"})
		b.add(Entry{Device: num(8, 0), Path: "/", FSType: "ext4", Source: "/dev/sda", Options: []string{"rw"}})
	}
	for name, c := range map[string]struct {
		make func(*testing.T, *fakeServer)
		want Capacity
	}{
		"virtio-scsi":        {func(t *testing.T, b *fakeServer) { scsi(t, b, "virtio_scsi") }, Capacity{Bus: "scsi", Attached: 1, Free: scsiLimit - 2}},
		"another controller": {func(t *testing.T, b *fakeServer) { scsi(t, b, "ata_piix") }, Capacity{Attached: 1, Unknown: "the limit of the SCSI controller ata_piix of disk sda is unknown"}},
		"NVMe": {func(t *testing.T, b *fakeServer) {
			b.Sysfs(t, "nvme0n1", map[string]string{"dev": "259:0\n", "device/serial": serial, "device/transport": "pcie\n"})
		}, Capacity{Attached: 1, Unknown: "the limit of the bus of disk nvme0n1 is unknown"}},
		"virtio without slots": {func(t *testing.T, b *fakeServer) { b.plug(t, "vdb", serial, num(254, 16)) }, Capacity{Attached: 1, Unknown: "the kernel shows no hot-plug slots of the PCI bus"}},
		"nothing":              {func(*testing.T, *fakeServer) {}, Capacity{Unknown: "the server shows neither a system disk nor a volume"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeServer(t)
			c.make(t, b)
			if diff := cmp.Diff(c.want, b.Count(t.Context(), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCountIsStableWhileDisksAreUnresponsive(t *testing.T) {
	for _, sequences := range []bool{true, false} {
		for _, restarted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeServer(t)
				p := pc(t, b)
				p.plug("0000:00:07.0", "vdb", serial, 16)
				p.plug("0000:00:08.0", "vdc", otherSerial, 32)
				if sequences {
					for i, name := range []string{"vda", "vdb", "vdc"} {
						b.number(name, string(rune('1'+i)))
					}
				}
				want := Capacity{Bus: "virtio", Attached: 1, Free: 23, Foreign: 1}
				foreign := []volume.ID{otherVol}
				if restarted {
					want.Attached, want.Foreign, foreign = 2, 0, nil // a disk that never answered may be any volume
				} else if diff := cmp.Diff(want, b.Count(t.Context(), foreign)); diff != "" {
					t.Errorf("before (-want +got):\n%s", diff)
				}
				defer b.serials.Block("vda", "vdb", "vdc")()
				for range 3 {
					if diff := cmp.Diff(want, b.Count(t.Context(), foreign)); diff != "" {
						t.Errorf("while they are unresponsive, diskseq %t, restarted %t (-want +got):\n%s", sequences, restarted, diff)
					}
				}
			})
		}
	}
}

func FuzzBridgeKind(f *testing.F) {
	config := make([]byte, 256)
	config[0x34], config[0x40], config[0x41] = 0x40, 0x01, 0x40 // in a circle
	f.Add(config)
	f.Add([]byte(strings.Repeat("\xff", 256)))
	f.Fuzz(func(t *testing.T, config []byte) {
		if kind := bridgeKind(config); kind < plainBridge || kind > 15 {
			t.Errorf("kind %d", kind)
		}
	})
}

// page80 is a SCSI unit serial number page.
func page80(serial string) string {
	return string([]byte{0, 0x80, byte(len(serial) >> 8), byte(len(serial))}) + serial
}
