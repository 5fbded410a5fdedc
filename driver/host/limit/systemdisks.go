package limit

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
)

// mountedDisks are disks by what is mounted of them, as far as this mount namespace shows it.
type mountedDisks struct {
	system []string // this machine runs from them
	others []string // volumes that another CSI driver staged
}

func (c *Counter) mountedDisks(disks []disk.Entry) (used mountedDisks, err error) {
	table, err := c.mounts.Table()
	if err != nil {
		return used, err
	}
	names := make([]string, len(disks))
	for i, d := range disks {
		names[i] = d.Name
	}
	byNumber := c.blockNumbers(names)
	below := func(m mount.Entry) []string {
		name, ok := byNumber[m.Device.String()]
		if !ok && m.FSType == "btrfs" { // it has a device number of its own
			name = filepath.Base(m.Source)
		}
		return c.backingDisks(name, names)
	}
	for _, m := range table {
		driver := stagingDriver(m.Path)
		switch {
		case c.driver != "" && driver != "" && driver != c.driver:
			used.others = append(used.others, below(m)...)
		case ofMachine(m):
			used.system = append(used.system, below(m)...)
		}
	}
	return used, nil
}

// stagingDriver is the CSI driver whose volume is staged at a path; empty if kubelet stages no file system there. From Kubernetes 1.24 on
// it stages at KUBELET/plugins/kubernetes.io/csi/DRIVER/HASH/globalmount.
func stagingDriver(path string) string {
	_, staged, ok := strings.Cut(path, "/plugins/kubernetes.io/csi/")
	parts := strings.Split(staged, "/")
	if !ok || len(parts) != 3 || parts[0] == "pv" || parts[2] != "globalmount" {
		return ""
	}
	return parts[0]
}

// ofMachine reports whether this machine runs from what is mounted. That is the root directory, the directory of kubelet, or what is bound
// into this container. A part of a volume looks like the last, but is below the directory of kubelet. It may be a subvolume of
// btrfs, a directory, or a file that is another volume.
func ofMachine(m mount.Entry) bool {
	const subPaths = "/volume-subpaths/" // kubelet binds a subPath of a volume below it, wherever its directory is
	if strings.Contains(m.Path, "/kubelet/") || strings.Contains(m.Path, subPaths) {
		return false
	}
	bound := m.Root != "/" && m.FSType != "devtmpfs"
	return m.Path == "/" || strings.HasSuffix(m.Path, "/kubelet") || bound
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
