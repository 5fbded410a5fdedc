//go:build vm

package vm

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// kubelet sets memory.oom.group for each container with cgroup v2 (Kubernetes 1.28). The kernel then ends the whole
// container with the process that it chooses. It does so too if the node has no memory left, and the container reached
// no limit. That is why the driver bounds the memory of a check, and docs/explanation/node.md says so.
func TestAContainerOfOneGroupDiesWithTheProcessThatTheKernelChooses(t *testing.T) {
	n := boot(t, guest.Machine{})
	const script = `
grep -q ' /sys/fs/cgroup ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/pod; echo GROUP > /sys/fs/cgroup/pod/memory.oom.group
echo 1 > /proc/sys/vm/overcommit_memory
( echo 0 > /sys/fs/cgroup/pod/cgroup.procs; echo -997 > /proc/self/oom_score_adj; exec sleep 600 ) &
driver=$!
( echo 0 > /sys/fs/cgroup/pod/cgroup.procs; echo 1000 > /proc/self/oom_score_adj; exec tail /dev/zero ) || true
sleep 1
kill -0 $driver 2>/dev/null && echo lives || echo dead
kill -9 $driver 2>/dev/null || true
`
	for group, want := range map[string]string{"0": "lives", "1": "dead"} {
		got := n.sh(t, strings.ReplaceAll(script, "GROUP", group))
		if !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("memory.oom.group %s: want that the process with the score of the driver %s, got %q", group, want, got)
		}
	}
}
