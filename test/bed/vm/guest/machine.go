package guest

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
)

// Machine is the hardware of a guest. The zero value is a server of machine type pc with virtio disks, as Nova defines it.
type Machine struct {
	Type      string   // pc or q35; pc when empty
	Ports     int      // q35: root ports that are free for disks
	Bus       string   // of the disk that the server runs from: virtio or scsi; virtio when empty
	SCSI      bool     // add a virtio-scsi controller if the system disk does not use one
	Silent    bool     // the virtio-scsi controller announces no new or removed disk and no new size
	Udev      bool     // start udevd
	Kernel    string   // one of package image; trixie when empty
	Boot      string   // further arguments of the kernel
	MemoryMiB int      // 768 when 0
	CDROM     string   // an image to put into the IDE CD-ROM drive of a pc
	More      []string // further arguments of QEMU
}

// String names the machine in reports.
func (m Machine) String() string {
	m = m.withDefaults()
	name := m.Type
	if m.Bus != "virtio" {
		name += ", runs from " + m.Bus
	}
	if m.Silent {
		name += ", SCSI without events"
	}
	if m.Ports > 0 {
		name += fmt.Sprintf(", %d free ports", m.Ports)
	}
	if m.Udev {
		name += ", udev"
	}
	return name
}

func (m Machine) withDefaults() Machine {
	m.Type = cmp.Or(m.Type, "pc")
	m.Bus = cmp.Or(m.Bus, "virtio")
	m.Kernel = cmp.Or(m.Kernel, "trixie")
	m.MemoryMiB = cmp.Or(m.MemoryMiB, 768)
	return m
}

// ServerID is the hardware UUID of the guest. Nova's libvirt driver sets it to the server ID.
const ServerID = "5f0c6d1e-8b7a-4c3d-9e21-0a1b2c3d4e5f"

// SystemLabel is the label of the file system on the disk that the server runs from.
const SystemLabel = "system"

// commandLine collects the arguments of one machine.
type commandLine struct {
	Machine
	args  []string
	ports int // root ports so far
}

// commandLine lists the devices of a Nova server: graphics, USB, network, serial port, balloon, random numbers, and the disk it runs from.
// On q35 each has a root port of its own, as libvirt gives them.
func (m Machine) commandLine(dir string) []string {
	c := commandLine{Machine: m}
	c.add("-machine", m.Type+",usb=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", fmt.Sprint(m.MemoryMiB),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-uuid", ServerID, "-smbios", "type=1,manufacturer=OpenStack Foundation,product=OpenStack Nova",
		"-chardev", "file,id=console,path="+filepath.Join(dir, "console.log"), "-serial", "chardev:console",
		"-qmp", "unix:"+filepath.Join(dir, monitorSocket)+",server=on,wait=off",
		"-chardev", "socket,id=agent,path="+filepath.Join(dir, agentSocket)+",server=on,wait=off",
		"-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:127.0.0.1:0-:%d", agent.TCPPort),
		"-object", "rng-random,id=random,filename=/dev/urandom",
		"-blockdev", "driver=file,node-name=system-file,filename="+filepath.Join(dir, systemFile),
		"-blockdev", "driver=raw,node-name=system,file=system-file")
	if m.Type == "q35" {
		c.add("-device", "VGA,bus=pcie.0,addr=0x1")
		c.device("qemu-xhci,id=usb")
	} else {
		c.add("-device", "VGA,addr=0x2", "-device", "piix3-usb-uhci,id=usb,addr=0x1.0x2")
	}
	c.device("virtio-net-pci,netdev=net,romfile=")
	c.device("virtio-serial-pci,id=serial")
	c.add("-device", "virtserialport,bus=serial.0,chardev=agent,name="+agent.Port)
	c.device("virtio-balloon-pci")
	c.device("virtio-rng-pci,rng=random")
	if m.SCSI || m.Bus == "scsi" {
		controller := "virtio-scsi-pci,id=scsi"
		if m.Silent {
			controller += ",hotplug=off,param_change=off"
		}
		c.device(controller)
	}
	if m.Bus == "scsi" {
		c.add("-device", "scsi-hd,bus=scsi.0,scsi-id=0,lun=0,drive=system")
	} else {
		c.device("virtio-blk-pci,drive=system")
	}
	if m.CDROM != "" {
		c.add("-blockdev", "driver=file,node-name=cdrom-file,read-only=on,filename="+m.CDROM,
			"-blockdev", "driver=raw,node-name=cdrom,read-only=on,file=cdrom-file", "-device", "ide-cd,bus=ide.0,unit=0,drive=cdrom")
	}
	for i := range m.Ports {
		c.port(freePort(i))
	}
	c.add(m.More...)
	return c.args
}

func (c *commandLine) add(args ...string) { c.args = append(c.args, args...) }

// device adds a PCI device.
func (c *commandLine) device(description string) {
	if c.Type == "q35" {
		id := fmt.Sprintf("taken%d", c.ports)
		c.port(id)
		description += ",bus=" + id
	}
	c.add("-device", description)
}

// port adds a root port; eight of them are the functions of one device, from device 2 on.
func (c *commandLine) port(id string) {
	const functions = 8
	multifunction := "off"
	if c.ports%functions == 0 {
		multifunction = "on"
	}
	c.add("-device", fmt.Sprintf("pcie-root-port,id=%s,bus=pcie.0,chassis=%d,port=%d,addr=0x%x.0x%x,multifunction=%s",
		id, c.ports+1, c.ports+1, 2+c.ports/functions, c.ports%functions, multifunction))
	c.ports++
}

// freePort names the root ports for disks.
func freePort(i int) string { return fmt.Sprintf("free%d", i) }
