//go:build vm

package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// podLabel is the label that kubelet asks for. The policy lets a pod use files of this label only.
const podLabel = "system_u:object_r:pod_file_t"

// kubelet asks for the label of the pod by a mount option where the CSIDriver says seLinuxMount, and has no file relabelled then. mount(8) drops the
// option if it does not see selinuxfs and /etc/selinux. The pod would have no access, although NodeStageVolume succeeded.
func TestUnderSELinuxAVolumeHasTheLabelOfItsPodOrIsRefused(t *testing.T) {
	n := boot(t, guest.Machine{Boot: "security=selinux selinux=1"})
	n.enforce(t)
	c := claim{newVolume(), "ext4"}
	d := n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"})

	n.startDriver(t, nil, "--with-topology=false")
	n.use(t, c)
	if err := n.asPod("echo x > " + c.target() + "/file"); err == nil || !strings.Contains(err.Error(), "can't create") {
		t.Fatalf("the trap is not set: want a pod refused on a volume without its label, got %v", err)
	}
	must(t, "release", n.release(n.ctx(t), c))
	must(t, "stage with the label", n.stageLabelled(t, c))
	must(t, "publish", n.publish(n.ctx(t), c))
	must(t, "write as the pod", n.asPod("echo x > "+c.target()+"/file; cat "+c.target()+"/file"))
	must(t, "release", n.release(n.ctx(t), c))
	recordCase(t, n, "virtio", "SELinux enforcing, the driver sees /sys/fs/selinux and /etc/selinux", "the mount has the label; the pod writes")

	n.stopDriver(t)
	n.sh(t, "rm -f /csi/*")
	// A container sees neither, unless it mounts them.
	n.startDriver(t, []string{
		"/busybox/unshare", "-m", "/busybox/sh", "-c", `umount /sys/fs/selinux && mount -t tmpfs none /etc/selinux && exec "$0" "$@"`,
	}, "--with-topology=false")
	refused(t, "stage with the label", n.stageLabelled(t, c), []string{"SELinux", "/etc/selinux", "seLinuxMount"}, codes.FailedPrecondition, codes.Internal)
	n.notInUse(t, d)
	recordCase(t, n, "virtio", "SELinux enforcing, the driver does not see them", "refused, nothing stays mounted")
}

// The labels that a runtime gives to the containers of the node: a privileged one is spc_t, any other container_t unless seLinuxOptions say otherwise.
const (
	privileged = "system_u:system_r:spc_t"
	ordinary   = "system_u:system_r:container_t"
)

// The driver makes its socket in a directory of kubelet. spec.driver.seLinux (chart: node.selinux) has the sidecars run as spc_t; without it the policy
// keeps them from that socket, and the driver is never registered.
func TestUnderSELinuxTheSidecarsReachTheDriverWithTheSettingAlone(t *testing.T) {
	n := boot(t, guest.Machine{Boot: "security=selinux selinux=1"})
	n.enforce(t)
	n.sh(t, `mkdir -p /var/lib/kubelet/plugins_registry /containers
for dir in /csi /var/lib/kubelet/plugins_registry; do mount -t tmpfs -o rootcontext=system_u:object_r:container_var_lib_t none $dir; done
mount -t tmpfs -o rootcontext=system_u:object_r:container_file_t none /containers`)
	for _, name := range []string{"registrar", "livenessprobe"} {
		n.copyProgram(t, name)
	}
	n.startDriver(t, withLabel(privileged), "--with-topology=false")
	if label := n.sh(t, fmt.Sprintf("cat /proc/%d/attr/current | tr -d '\\000'", n.pid)); label != privileged {
		t.Fatalf("want the driver to run as a privileged container, got %q", label)
	}
	const registered = "/var/lib/kubelet/plugins_registry/cinder.csi.openstack.org-reg.sock"
	for _, c := range []struct {
		label, setting string
		reach          bool
	}{{ordinary, "disabled", false}, {privileged, "enabled", true}} {
		var sidecars []int
		for name, args := range map[string][]string{
			"registrar":     {"--kubelet-registration-path=/csi/csi.sock", "--plugin-registration-path=/var/lib/kubelet/plugins_registry"},
			"livenessprobe": {"--http-endpoint=127.0.0.1:29601"},
		} {
			pid, err := n.Start(agent.Command{Args: slices.Concat(withLabel(c.label), []string{"/containers/" + name}, args), Log: "/containers/" + name + ".log"})
			must(t, "start "+name, err)
			sidecars = append(sidecars, pid)
		}
		check := fmt.Sprintf("test -S %s && wget -q -O - http://127.0.0.1:29601/healthz", registered)
		if c.reach {
			n.eventually(t, "registered and healthy", func() error { _, err := n.Shell(check); return err })
		} else {
			n.eventually(t, "two denials", func() error {
				return csitest.Outcome(n.Shell(`test "$(dmesg | grep -c 'avc:.*denied.*{ write }.*scontext=` + ordinary + `.*container_var_lib_t.*tclass=sock_file')" -ge 1 && wget -S -O - http://127.0.0.1:29601/healthz 2>&1 | grep -q ' 500 '`))
			})
			if out, err := n.Shell("test -S " + registered); err == nil {
				t.Errorf("want no registration by an ordinary container, got %s", out)
			}
		}
		for _, pid := range sidecars {
			n.sh(t, fmt.Sprintf("kill %d; while kill -0 %[1]d 2>/dev/null; do usleep 50000; done", pid))
		}
		recordCase(t, n, "none", "SELinux enforcing, spec.driver.seLinux "+c.setting+": registrar and livenessprobe run as "+c.label, fmt.Sprintf("registered and healthy: %t", c.reach))
	}
	c := claim{newVolume(), "ext4"}
	n.plug(t, guest.Disk{Volume: c.id, Bus: "virtio"})
	must(t, "stage with the label", n.stageWith(t, c, "system_u:object_r:container_file_t"))
	must(t, "publish", n.publish(n.ctx(t), c))
	must(t, "write as a container", n.as(ordinary, "cd "+c.target()+" && echo x > file && read -r x < file"))
	must(t, "release", n.release(n.ctx(t), c))
}

// withLabel is a program that runs another one with a label.
func withLabel(label string) []string {
	return []string{"/busybox/sh", "-c", "printf %s " + label + ` > /proc/self/attr/exec && exec "$0" "$@"`}
}

// copyProgram builds a program of the test cluster, which stands in for a sidecar, and copies it to /containers.
func (n *node) copyProgram(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./"+name)
	build.Dir = filepath.Join("..", "..", "bed", "cluster", "programs") // another module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", name, err, out)
	}
	program, err := os.ReadFile(file)
	must(t, "read the program", err)
	o, err := n.Run(agent.Command{Args: []string{"/busybox/sh", "-ec", "dd of=/containers/" + name + " bs=64k && chmod 755 /containers/" + name}, Input: program})
	if err != nil || o.Code != 0 {
		t.Fatalf("copy %s: %v, %s", name, err, o.Output)
	}
}

// enforce loads the policy and has the kernel enforce it.
func (n *node) enforce(t *testing.T) {
	t.Helper()
	testenv.NeedTools(t, "secilc", "secilc")
	dir := t.TempDir()
	compiled := filepath.Join(dir, "policy")
	testenv.Run(t, "secilc", "-o", compiled, "-f", filepath.Join(dir, "contexts"), "-c", "33", filepath.Join("testdata", "selinux.cil"))
	policy, err := os.ReadFile(compiled)
	must(t, "read the policy", err)
	o, err := n.Run(agent.Command{Args: []string{"/busybox/sh", "-ec", `
mount -t selinuxfs selinuxfs /sys/fs/selinux
mkdir -p /etc/selinux
echo SELINUX=enforcing > /etc/selinux/config
dd of=/sys/fs/selinux/load bs=64k iflag=fullblock
echo 1 > /sys/fs/selinux/enforce`}, Input: policy})
	if err != nil || o.Code != 0 {
		t.Fatalf("enforce the policy: %v, %s", err, o.Output)
	}
	if label := n.sh(t, "cat /proc/self/attr/current | tr -d '\\000'"); !strings.Contains(label, ":node_t") {
		t.Fatalf("want the node's programs to have its label, got %q", label)
	}
}

// asPod runs a script with the label of a pod.
func (n *node) asPod(script string) error { return n.as("system_u:system_r:pod_t", script) }

// as runs a script with a label. The label has no newline: the shell would write it in a second call, which clears the label.
func (n *node) as(label, script string) error {
	return csitest.Outcome(n.Shell("printf %s " + label + " > /proc/self/attr/current; " + script))
}

func (n *node) stageLabelled(t *testing.T, c claim) error { return n.stageWith(t, c, podLabel) }

// stageWith stages with the label of a mount.
func (n *node) stageWith(t *testing.T, c claim, label string) error {
	t.Helper()
	v := c.capability()
	v.GetMount().MountFlags = []string{`context="` + label + `"`}
	return csitest.Outcome(n.NodeStageVolume(n.ctx(t), &csi.NodeStageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: v}))
}
