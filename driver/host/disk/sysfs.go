package disk

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// names lists the whole disks in sysfs, without hidden ones. The paths to an NVMe disk with multipath are hidden disks
// without a device node; they have the serial of the disk.
func (f *Finder) names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.options.SysRoot, "block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "list the disks of this machine: %w", err).Cause(cause.NodeSystem)
	}
	var names []string
	for _, e := range entries {
		if f.Attribute(e.Name(), "hidden") != "1" {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// ReadLine reads a file of one line of sysfs, without the end of the line.
func ReadLine(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return trimLine(content), nil
}

// trimLine removes what the kernel or a device adds to a value.
func trimLine(content []byte) string { return strings.Trim(string(content), " \t\n\x00") }

// Attribute reads a file of one line below /sys/block/NAME; empty if it is not there.
func (f *Finder) Attribute(name, file string) string {
	line, _ := ReadLine(filepath.Join(f.options.SysRoot, "block", name, file))
	return line
}

// Partitions lists the partitions of a disk.
func (f *Finder) Partitions(name string) []string {
	files, _ := filepath.Glob(filepath.Join(f.options.SysRoot, "block", name, "*", "partition"))
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// Node is the path of the device node of a disk or partition.
func (f *Finder) Node(name string) string { return filepath.Join(f.options.DevRoot, name) }

// Open opens the device node of a disk or partition.
func (f *Finder) Open(name string) (Device, error) { return f.options.Open(f.Node(name)) }

// NodeOf returns the device node of the disk whose number matches; empty if there is none.
func (f *Finder) NodeOf(matches func(Number) bool) string {
	names, _ := f.names()
	for _, name := range names {
		if number, ok := parseNumber(f.Attribute(name, "dev")); ok && matches(number) {
			return f.Node(name)
		}
	}
	return ""
}

// VolumeNodes lists the device nodes of the disks whose content a tenant writes, and of all that the machine has made of them. The disks are the
// volumes, by cached serials, and those that a pod may have brought. Loop devices are among them: kubelet attaches one to each volume of volumeMode
// Block, which sysfs does not show as its holder.
func (f *Finder) VolumeNodes() []string {
	names, _ := f.names()
	nodes := map[string]bool{}
	for _, name := range names {
		loop := strings.HasPrefix(name, "loop") && f.Attribute(name, "loop/backing_file") != ""
		if loop || f.lastSerial(name).IsVolume() || f.connected(name) {
			f.addNodes(nodes, name)
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// addNodes adds a disk, its partitions, and the LVM, RAID and mapped devices on them. A tenant writes the partition table and those headers, too, and
// udev tells the kernel about a file system in each.
func (f *Finder) addNodes(nodes map[string]bool, name string) {
	if nodes[f.Node(name)] {
		return
	}
	nodes[f.Node(name)] = true
	block := filepath.Join(f.options.SysRoot, "block", name)
	for _, partition := range f.Partitions(name) {
		nodes[f.Node(partition)] = true
	}
	for _, pattern := range []string{"holders/*", "*/holders/*"} {
		holders, _ := filepath.Glob(filepath.Join(block, pattern))
		for _, holder := range holders {
			f.addNodes(nodes, filepath.Base(holder))
		}
	}
}
