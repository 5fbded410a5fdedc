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
		switch userOf(m, c.driver) {
		case anotherDriver:
			used.others = append(used.others, below(m)...)
		case machine:
			used.system = append(used.system, below(m)...)
		}
	}
	return used, nil
}

// user is who uses a mount.
type user int

const (
	unknown       user = iota // nothing that the driver knows
	machine                   // this machine runs from it
	pods                      // kubelet mounted it, for pods
	anotherDriver             // another CSI driver staged it
)

// userOf decides who uses a mount, by where it is. KUBELET is a directory with the name kubelet:
//
//	.../plugins/kubernetes.io/csi/DRIVER/HASH/globalmount   the CSI driver, from Kubernetes 1.24 on; earlier DRIVER is pv
//	KUBELET/...                                             pods
//	.../volume-subpaths/...                                 pods: kubelet binds a subPath there, wherever its directory is
//	/                                                       machine
//	KUBELET                                                 machine
//	elsewhere, a part of a file system                      machine: a directory of it is bound into this container
//	elsewhere, a whole file system                          unknown
//
// A part of a volume looks like what is bound into this container. It may be a subvolume of btrfs, a directory, or a file that is
// another volume. But it is below the directory of kubelet.
func userOf(m mount.Entry, own string) user {
	parts := strings.Split(m.Path, "/")
	parents, name := parts[:len(parts)-1], parts[len(parts)-1]
	driver := stagingDriver(m.Path)
	switch {
	case own != "" && driver != "" && driver != own:
		return anotherDriver
	case slices.Contains(parents, "kubelet"), slices.Contains(parents, "volume-subpaths"):
		return pods
	case m.Path == "/", name == "kubelet", m.Root != "/" && m.FSType != "devtmpfs":
		return machine
	}
	return unknown
}

// stagingDriver is the CSI driver whose volume is staged at a path; empty if none is.
func stagingDriver(path string) string {
	_, staged, ok := strings.Cut(path, "/plugins/kubernetes.io/csi/")
	parts := strings.Split(staged, "/")
	if !ok || len(parts) != 3 || parts[0] == "pv" || parts[2] != "globalmount" {
		return ""
	}
	return parts[0]
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
