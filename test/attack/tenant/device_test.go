package tenant

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deviceNode makes a block device node with the number of a disk, as a container with CAP_MKNOD may. Its device cgroup keeps it from opening
// the node.
func deviceNode(t *testing.T, path, disk string) {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Stat(disk, &s))
	must(t, unix.Mknod(path, unix.S_IFBLK|0o600, int(s.Rdev)))
}

// bind shows one file at another place, as kubelet does for subPath.
func bind(t *testing.T, source, target string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(target), 0o750))
	must(t, os.WriteFile(target, nil, 0o600))
	must(t, unix.Mount(source, target, "", unix.MS_BIND, ""))
}

// emptyDir is a pod's volume of medium Memory.
func (n *tenants) emptyDir(t *testing.T, pod string) string {
	t.Helper()
	dir := n.kubelet("pods", pod, "volumes", "kubernetes.io~empty-dir", "m")
	must(t, os.MkdirAll(dir, 0o750))
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	return dir
}

// A container with CAP_MKNOD makes a device node with the number of another tenant's disk in its own volume, and has kubelet bind it by
// subPath. The other tenant's volume is unstaged and published to one pod as if the node were not there.
func TestH1ADeviceNodeInAPodsVolumeDoesNotHoldAnothersVolume(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, n *tenants){
		"in memory, by subPath": func(t *testing.T, n *tenants) {
			node := filepath.Join(n.emptyDir(t, "evil"), "node")
			deviceNode(t, node, n.disks[victim])
			bind(t, node, n.kubelet("pods", "evil", "volume-subpaths", "m", "c", "0"))
		},
		"in memory, bound where block volumes are": func(t *testing.T, n *tenants) {
			node := filepath.Join(n.emptyDir(t, "evil"), "node")
			deviceNode(t, node, n.disks[victim])
			bind(t, node, n.kubelet("plugins", "kubernetes.io", "csi", "volumeDevices", "publish", "pv-evil", "evil"))
		},
		"the machine's own node, by subPath": func(t *testing.T, n *tenants) {
			bind(t, n.disks[victim], n.kubelet("pods", "evil", "volume-subpaths", "dev", "c", "0"))
		},
		"a whole file system of nodes": func(t *testing.T, n *tenants) {
			for i := range 3 {
				dir := n.emptyDir(t, fmt.Sprintf("evil-%d", i))
				deviceNode(t, filepath.Join(dir, "node"), n.disks[victim])
				bind(t, filepath.Join(dir, "node"), n.kubelet("pods", fmt.Sprintf("evil-%d", i), "volume-subpaths", "m", "c", "0"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, block := range []bool{false, true} {
				n := newTenants(t, 64<<20)
				attack(t, n)
				n.lives(t, claim{volume: victim, pod: "good", block: block})
			}
		})
	}
}

// The same volume bound at another pod's block target is in use, and stays so: the rule above takes nothing away from that.
func TestH1ABlockVolumeOfAnotherPodStillHoldsItsVolume(t *testing.T) {
	n := newTenants(t, 8<<20)
	first, second := claim{volume: victim, pod: "1", block: true}, claim{volume: victim, pod: "2", block: true}
	must(t, n.stage(t, first))
	must(t, n.publish(t, first))
	if err := n.publish(t, second); err == nil {
		t.Error("want a second pod refused by ReadWriteOncePod")
	}
	if err := n.unstage(t, first); err == nil {
		t.Error("want the volume busy while a pod has it")
	}
	must(t, n.unpublish(t, first))
	n.lives(t, second)
}

// What a tenant chooses in a mount's names is text for the driver, never a mount of its own: an escaped line break begins no line, and a path
// that names a device is none.
func TestNamesInTheMountTableAreText(t *testing.T) {
	n := newTenants(t, 64<<20)
	for _, name := range []string{"a\n1 2 7:0 / " + n.staging(claim{volume: victim}) + " rw - ext4 x rw", `a\012b`, "a b\tc", "#"} {
		dir := n.kubelet("pods", "evil", "volumes", "kubernetes.io~empty-dir", "m", name)
		must(t, os.MkdirAll(dir, 0o750))
		must(t, unix.Mount(n.disks[victim], dir, "tmpfs", 0, "")) // the source is any text where the file system has no disk
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	n.lives(t, claim{volume: victim, pod: "good"})
}

// A link where kubelet names a directory would lead a mount, an unmount or a removal to a place that nobody named.
func TestALinkInPlaceOfAMountPointIsRefused(t *testing.T) {
	n := newTenants(t, 64<<20)
	good := claim{volume: victim, pod: "good"}
	must(t, n.stage(t, good))
	must(t, n.publish(t, good))
	evil := claim{volume: attacker, pod: "evil"}
	for _, link := range []string{n.staging(evil), n.target(evil)} {
		must(t, os.MkdirAll(filepath.Dir(link), 0o750))
		must(t, os.Symlink(n.target(good), link))
	}
	for name, call := range map[string]func(*testing.T, claim) error{"stage": n.stage, "publish": n.publish, "unpublish": n.unpublish, "unstage": n.unstage} {
		if err := call(t, evil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: want the link refused, got %v", name, err)
		}
	}
	must(t, n.unpublish(t, good))
	must(t, n.unstage(t, good))
}
