package tenant

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// deviceNode makes a block device node with the number of a disk, as a container with CAP_MKNOD may. The device cgroup prevents the container
// from opening it.
func deviceNode(t *testing.T, path, disk string) {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Stat(disk, &s))
	must(t, unix.Mknod(path, unix.S_IFBLK|0o600, int(s.Rdev)))
}

// bind mounts one file at another path, as kubelet does for subPath.
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

// A container with CAP_MKNOD makes a device node in its own volume, with the number of another tenant's disk. It has kubelet bind the node by
// subPath. The driver still publishes the other volume to one pod and unstages it.
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

// A volume that is bound at the block target of another pod is still in use. The rule above does not change that.
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

// Names in the mount table that a tenant chooses are only text for the driver. An escaped line break starts no new line, and a path that
// looks like a device is not a device.
func TestNamesInTheMountTableAreText(t *testing.T) {
	n := newTenants(t, 64<<20)
	for _, name := range []string{"a\n1 2 7:0 / " + n.staging(claim{volume: victim}) + " rw - ext4 x rw", `a\012b`, "a b\tc", "#"} {
		dir := n.kubelet("pods", "evil", "volumes", "kubernetes.io~empty-dir", "m", name)
		must(t, os.MkdirAll(dir, 0o750))
		must(t, unix.Mount(n.disks[victim], dir, "tmpfs", 0, "")) // a file system without a disk accepts any text as source
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	n.lives(t, claim{volume: victim, pod: "good"})
}

// A pod has a directory of its emptyDir mounted by subPath, and renames it into 66 others with names of 250 blanks. The line of that mount then has
// 66 KiB. No driver of the machine but this one is to see it, so the test runs again in a mount namespace of its own.
func TestALongLineInTheMountTableHoldsNoVolume(t *testing.T) {
	testenv.NeedRoot(t)
	const inside = "CINDER_CSI_TEST_OWN_MOUNTS"
	if os.Getenv(inside) == "" {
		cmd := exec.Command("unshare", "--mount", "--propagation", "private", os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	n := newTenants(t, 64<<20)
	dir, bound := n.emptyDir(t, "evil"), n.kubelet("pods", "evil", "volume-subpaths", "m", "c", "0")
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.MkdirAll(bound, 0o750)))
	must(t, unix.Mount(filepath.Join(dir, "sub"), bound, "", unix.MS_BIND, ""))
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	inner, name := top, strings.Repeat(" ", 250)
	for range 66 { // the path has more than 4,096 bytes, so each step opens one directory
		must(t, unix.Mkdirat(inner, name, 0o755))
		inner, err = unix.Openat(inner, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
	}
	must(t, unix.Renameat(top, "sub", inner, "sub"))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	if !slices.ContainsFunc(strings.Split(string(mounts), "\n"), func(line string) bool { return len(line) > 64<<10 }) {
		t.Error("want a line of more than 64 KiB")
	}
	n.lives(t, claim{volume: victim, pod: "good"})
	n.lives(t, claim{volume: victim, pod: "good", block: true})
}

// A link in place of a directory that kubelet names would redirect a mount, an unmount or a removal.
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
