//go:build vm

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The metadata on the config drives. The ID is that of the hardware, or the driver would refuse it. The hardware has no zone.
const (
	driveServer = guest.ServerID
	driveZone   = "az-config"
)

// The driver parses ISO 9660 itself. For FAT it needs a kernel module, which the guest does not load by itself.
func TestAConfigDriveIsRead(t *testing.T) {
	for _, c := range []struct {
		name, format string
		cdrom        bool
		machine      guest.Machine
	}{
		{"iso9660 in the CD-ROM drive", "iso9660", true, guest.Machine{}},
		{"iso9660 on a virtio disk", "iso9660", false, guest.Machine{Type: "q35", Ports: 1}},
		{"vfat on a virtio disk", "vfat", false, guest.Machine{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := makeDrive(t, c.format)
			if c.cdrom {
				c.machine.CDROM = image
			}
			n := boot(t, c.machine)
			if !c.cdrom {
				n.plug(t, guest.Disk{Volume: "config-drive", Bus: "virtio", NoSerial: true, File: image})
			}
			for _, modules := range []bool{false, true} {
				if c.format == "vfat" && !modules {
					continue
				}
				n.wantFileSystem(t, c.format, modules)
				n.startDriver(t, nil)
				info, err := n.NodeGetInfo(n.ctx(t), &csi.NodeGetInfoRequest{})
				must(t, "ask which server this is", err)
				zone := info.GetAccessibleTopology().GetSegments()[contract.TopologyKeyOf(contract.DriverName)]
				if info.GetNodeId() != driveServer || zone != driveZone {
					t.Errorf("want server %s in zone %s, got %s in %s", driveServer, driveZone, info.GetNodeId(), zone)
				}
				n.stopDriver(t)
				n.sh(t, "rm -f /csi/*")
				record(t, "Config drive", "drive | machine | the kernel's module | read", c.name, n.Machine, loaded(c.format, modules), "server and zone")
			}
		})
	}
}

func loaded(format string, yes bool) string {
	if yes {
		return format + " loaded"
	}
	return format + " absent"
}

// wantFileSystem loads the kernel module of a file system, or makes sure that it is not loaded.
func (n *node) wantFileSystem(t *testing.T, format string, there bool) {
	t.Helper()
	if !there {
		n.sh(t, "! grep -qw "+format+" /proc/filesystems")
		return
	}
	modules := map[string]string{"iso9660": "isofs", "vfat": "vfat nls_cp437 nls_ascii"}[format]
	n.sh(t, "modprobe -a "+modules+" && grep -qw "+format+" /proc/filesystems")
}

// makeDrive makes a config drive as Nova does (nova/virt/configdrive.py).
func makeDrive(t *testing.T, format string) string { return makeDriveOf(t, format, driveZone) }

func makeDriveOf(t *testing.T, format, zone string) string {
	t.Helper()
	dir := t.TempDir()
	content, file := filepath.Join(dir, "content"), filepath.Join(dir, "drive")
	latest := filepath.Join(content, "openstack", "latest")
	must(t, "make a directory", os.MkdirAll(latest, 0o755))
	metadata := fmt.Sprintf(`{"uuid": %q, "name": "node-1", "availability_zone": %q, "devices": []}`, driveServer, zone)
	must(t, "write the metadata", os.WriteFile(filepath.Join(latest, "meta_data.json"), []byte(metadata), 0o644))
	if format == "iso9660" {
		testenv.NeedTools(t, "genisoimage", "genisoimage")
		testenv.Run(t, "genisoimage", "-o", file, "-ldots", "-allow-lowercase", "-allow-multidot", "-l", "-publisher", "OpenStack Compute",
			"-quiet", "-J", "-r", "-V", "config-2", content)
		return file
	}
	testenv.NeedTools(t, "mkfs.vfat", "dosfstools", "mcopy", "mtools")
	must(t, "make the drive's file", os.WriteFile(file, nil, 0o600))
	must(t, "make the drive's file", os.Truncate(file, 64<<20))
	testenv.Run(t, "mkfs.vfat", "-n", "config-2", file)
	testenv.Run(t, "mcopy", "-s", "-i", file, filepath.Join(content, "openstack"), "::")
	return file
}
