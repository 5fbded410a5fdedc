//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var nodeDisruptions = []scenario{
	{"pods with volumes of a drained node start on the other node of the zone", drainNode},
	{"kubelet is killed while pods write and others start", killKubelet},
	{"a node loses its power, its volumes move after the taint, and it returns", loseNode},
}

// elsewhere is the other node of zone az1.
var elsewhere = map[string]string{"node-az1": "node-az1-2", "node-az1-2": "node-az1"}

func drainNode(t *testing.T, c *cluster) {
	const node = "node-az1"
	w := writers{name: "drained", replicas: 3}
	c.startWriters(t, w, node)
	t.Cleanup(func() { // the drain cordons it
		_, _, _ = c.try(context.Background(), "", "kubectl", "uncordon", node)
	})
	before, began := c.logs(t, w), time.Now()
	c.kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", atMost)
	drained := time.Since(began)
	pause := c.moved(t, w, node, before)
	if left := volumeMounts(c.onNode(t, node, "cat", "/proc/self/mounts")); len(left) > 0 {
		t.Errorf("the drained node has mounts of volumes: %q", left)
	}
	fmt.Printf("measured: drain of a node with %d volumes %.1f s; at most %.1f s from a pod's last line to its first on the other node\n", w.replicas, drained.Seconds(), pause.Seconds())
	c.kubectl(t, "uncordon", node)
	c.rolledOut(t)
}

func killKubelet(t *testing.T, c *cluster) {
	const node = "node-az1"
	w := writers{name: "kept", replicas: 2}
	c.startWriters(t, w, node)
	began := time.Now()
	// Two pods are about to mount when it ends.
	c.apply(t, claim{name: "late-0", gib: 1}.manifest(c.namespace)+pod{name: "late-0", claim: "late-0", node: node}.manifest(c.namespace)+
		claim{name: "late-1", gib: 1}.manifest(c.namespace)+pod{name: "late-1", claim: "late-1", node: node}.manifest(c.namespace))
	eventually(t, patience, "a volume of the new pods attached", func() error {
		attached := c.kubectl(t, "get", "volumeattachments", "-o", `jsonpath={.items[?(@.status.attached==true)].spec.source.persistentVolumeName}`)
		for i := range 2 {
			name := c.volumeName(t, fmt.Sprintf("late-%d", i))
			if name != "" && strings.Contains(attached, name) {
				return nil
			}
		}
		return fmt.Errorf("attached are %q", attached)
	})
	old := strings.Fields(c.onNode(t, node, "pidof", "kubelet"))
	c.onNode(t, node, append([]string{"kill", "-KILL"}, old...)...)
	killed := time.Now()
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=condition=Ready", "pod/late-0", "pod/late-1", atMost)
	late := time.Since(killed)
	if now := strings.Fields(c.onNode(t, node, "pidof", "kubelet")); len(now) != 1 || now[0] == old[0] {
		t.Fatalf("kubelet was process %q and is %q: it was not killed", old, now)
	}
	for _, pod := range w.pods() {
		restarts := c.kubectl(t, "get", "pod", pod, "--namespace="+c.namespace, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
		if restarts != "0" {
			t.Errorf("pod %s was restarted %s times", pod, restarts)
		}
		log := c.writesOn(t, pod)
		expectWriters(t, log, c.uid(t, pod))
		if pause := log.LongestPause(began); pause > 5*time.Second {
			t.Errorf("pod %s wrote nothing for %s", pod, pause)
		}
	}
	// The new kubelet knows what the old one has mounted: the volume moves.
	before := c.logs(t, w)
	c.place(t, w, "kubernetes.io/hostname: "+elsewhere[node])
	c.kubectl(t, append([]string{"delete", "pod", "--namespace=" + c.namespace, atMost}, w.pods()...)...)
	pause := c.moved(t, w, node, before)
	fmt.Printf("measured: two pods ready %.1f s after kubelet was killed while they mounted; volumes of before moved in %.1f s\n", late.Seconds(), pause.Seconds())
}

// power switches a node on or off. After a failure the cluster has all its nodes again.
func (c *cluster) power(ctx context.Context, state, node string) error {
	_, _, err := c.try(ctx, "", filepath.Join(c.repo, "test", "bed", "cluster", "node-power.sh"), state, node)
	return err
}

const outOfService = "node.kubernetes.io/out-of-service"

// loseNode cuts the power of a node, that of the attacher's leader if it can. The administrator says that the node is down, which Kubernetes cannot
// know, and only then the volumes go to the other node.
func loseNode(t *testing.T, c *cluster) {
	node := "node-az1"
	leader := c.holder(t, "attacher")
	for _, p := range c.driverPods(t, "controller") {
		if p.Name == leader && elsewhere[p.Node] != "" {
			node = p.Node
		}
	}
	w := writers{name: "lost", replicas: 2}
	c.startWriters(t, w, node)
	t.Cleanup(func() {
		ctx := context.Background()
		testenv.Check(t, c.power(ctx, "on", node))
		_, _, _ = c.try(ctx, "", "kubectl", "taint", "node", node, outOfService+":NoExecute-")
	})
	before := c.logs(t, w)
	testenv.Must(t, c.power(t.Context(), "off", node))
	off := time.Now()
	c.kubectl(t, "wait", "node/"+node, "--for=condition=Ready=Unknown", atMost)
	noticed := time.Since(off)
	c.kubectl(t, "taint", "node", node, outOfService+"=nodeshutdown:NoExecute")
	tainted := time.Now()
	c.moved(t, w, node, before)
	moved := time.Since(tainted)
	c.expectOneAttachment(t, w, elsewhere[node])
	on := time.Now()
	testenv.Must(t, c.power(t.Context(), "on", node))
	c.kubectl(t, "wait", "node/"+node, "--for=condition=Ready", atMost)
	c.kubectl(t, "taint", "node", node, outOfService+":NoExecute-")
	c.rolledOut(t)
	// The node works as before, and has nothing of what it lost.
	c.start(t, []claim{{name: "returned", gib: 1}}, pod{name: "returned", claim: "returned", node: node})
	returned := time.Since(on)
	fmt.Printf("measured: node lost: not ready after %.1f s; volumes moved %.1f s after the taint; node back with a volume after %.1f s\n",
		noticed.Seconds(), moved.Seconds(), returned.Seconds())
	eventually(t, patience, "no mount of a volume that moved", func() error {
		table := c.onNode(t, node, "cat", "/proc/self/mounts")
		for _, pod := range w.pods() {
			if volume := c.volumeName(t, "data-"+pod); strings.Contains(table, volume) {
				return fmt.Errorf("volume %s of pod %s is mounted", volume, pod)
			}
		}
		return nil
	})
	for _, pod := range w.pods() {
		expectWriters(t, c.lines(t, pod), before[pod][0].Writer, c.uid(t, pod))
	}
}

// volumeName is the name of a claim's PersistentVolume.
func (c *cluster) volumeName(t *testing.T, claim string) string {
	t.Helper()
	return c.kubectl(t, "get", "pvc", claim, "--namespace="+c.namespace, "-o", "jsonpath={.spec.volumeName}")
}

// expectOneAttachment fails unless Cinder has one attachment for each volume of the pods, to the server of that name.
func (c *cluster) expectOneAttachment(t *testing.T, w writers, node string) {
	t.Helper()
	server := strings.TrimSpace(c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "server", "show", node, "-f", "value", "-c", "id"))
	for _, pod := range w.pods() {
		id := c.volumeOf(t, "data-"+pod)
		out := c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "--os-volume-api-version", "3.27", "volume", "attachment", "list",
			"--volume-id", id, "-f", "value", "-c", "Server ID", "-c", "Status")
		if want := server + " attached"; strings.TrimSpace(out) != want {
			t.Errorf("the attachments of volume %s are %q, want %q", id, out, want)
		}
	}
}
