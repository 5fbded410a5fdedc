//go:build vm

package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
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

// asPod runs a script with the label of a pod. The label has no newline: the shell would write it in a second call, which clears the label.
func (n *node) asPod(script string) error {
	_, err := n.Shell("printf %s system_u:system_r:pod_t > /proc/self/attr/current; " + script)
	return err
}

func (n *node) stageLabelled(t *testing.T, c claim) error {
	t.Helper()
	v := c.capability()
	v.GetMount().MountFlags = []string{`context="` + podLabel + `"`}
	_, err := n.NodeStageVolume(n.ctx(t), &csi.NodeStageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: v})
	return err
}
