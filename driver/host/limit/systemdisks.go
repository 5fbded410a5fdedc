package limit

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
)

// systemDisks lists the disks that this machine runs from, as far as this mount namespace shows them. They are below
// the root directory, the directory of kubelet, and directories that are bound into this container. What is mounted
// below the directory of kubelet belongs to pods. It may be a part of a volume: a subvolume of btrfs, a directory, or a
// file that is another volume.
func (c *Counter) systemDisks(disks []disk.Entry) []string {
	table, err := c.mounts.Table()
	if err != nil {
		return nil
	}
	names := make([]string, len(disks))
	for i, d := range disks {
		names[i] = d.Name
	}
	byNumber := c.blockNumbers(names)
	var system []string
	for _, m := range table {
		if strings.Contains(m.Path, "/kubelet/") || strings.Contains(m.Path, "/volume-subpaths/") {
			continue // of a pod: a part of a volume is mounted like a part of a system disk
		}
		bound := m.Root != "/" && m.FSType != "devtmpfs"
		if m.Path != "/" && !bound && !strings.HasSuffix(m.Path, "/kubelet") {
			continue
		}
		name, ok := byNumber[m.Device.String()]
		if !ok {
			name = filepath.Base(m.Source) // btrfs has a device number of its own
		}
		system = append(system, c.backingDisks(name, names)...)
	}
	slices.Sort(system)
	return slices.Compact(system)
}

// blockNumbers maps device numbers to the names of disks and partitions.
func (c *Counter) blockNumbers(disks []string) map[string]string {
	numbers := map[string]string{}
	for _, name := range disks {
		for _, partition := range append([]string{""}, c.disks.Partitions(name)...) {
			if number := c.disks.Attribute(name, filepath.Join(partition, "dev")); number != "" {
				numbers[number] = cmp.Or(partition, name)
			}
		}
	}
	return numbers
}

// backingDisks returns the disks below a disk, a partition or a mapping of the device mapper.
func (c *Counter) backingDisks(name string, disks []string) []string {
	const depth = 8
	var found []string
	level := []string{name}
	for range depth {
		var next []string
		for _, n := range level {
			whole := n
			if !slices.Contains(disks, n) {
				i := slices.IndexFunc(disks, func(d string) bool { return slices.Contains(c.disks.Partitions(d), n) })
				if i < 0 {
					continue
				}
				whole = disks[i]
			}
			slaves, _ := os.ReadDir(filepath.Join(c.sys, "block", whole, "slaves"))
			if len(slaves) == 0 {
				found = append(found, whole)
			}
			for _, s := range slaves {
				next = append(next, s.Name())
			}
		}
		level = next
	}
	return found
}
