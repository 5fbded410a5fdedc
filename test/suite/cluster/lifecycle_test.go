//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var lifecycleScenarios = []scenario{
	{"node with the start-up taint: its pod waits for the driver", startupTaint},
	{"drained node: the driver stays until the volume is detached", drainHook},
	{"rollout with wrong credentials stops, volumes still work", wrongCredentials},
}

const startupTaintKey = driverName + "/agent-not-ready"

// leave makes the driver leave a node until the end of the test, or until a call of back. The node loses the label by which the DaemonSet selects it.
func (c *cluster) leave(t *testing.T, node string) (back func()) {
	t.Helper()
	const label = "kubernetes.io/os"
	back = func() {
		if _, _, err := c.try(context.Background(), "", "kubectl", "label", "node", node, "--overwrite", label+"=linux"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		back()
		if _, _, err := c.try(context.Background(), "", "kubectl", "rollout", "status", "daemonset/cinder-csi-node", "--namespace="+namespaces["node"], atMost); err != nil {
			t.Error(err)
		}
	})
	c.kubectl(t, "label", "node", node, "--overwrite", label+"=none")
	return back
}

// awaitDriverOn waits until the CSINode of a node has the driver, or no longer has it.
func (c *cluster) awaitDriverOn(t *testing.T, node string, want bool) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the driver in CSINode %s: %t", node, want), func() error {
		out, _, err := c.try(context.Background(), "", "kubectl", "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}")
		if got := slices.Contains(strings.Fields(out), driverName); err != nil || got != want {
			return fmt.Errorf("it has the drivers %q: %w", out, err)
		}
		return nil
	})
}

func (c *cluster) taints(t *testing.T, node string) []string {
	t.Helper()
	return strings.Fields(c.kubectl(t, "get", "node", node, "-o", "jsonpath={.spec.taints[*].key}"))
}

// startupTaint has a node without the driver join with the taint. A pod with a volume waits there until the driver is ready, and no longer.
func startupTaint(t *testing.T, c *cluster) {
	const node = "node-az1-2"
	back := c.leave(t, node)
	c.awaitDriverOn(t, node, false)
	t.Cleanup(func() {
		_, _, _ = c.try(context.Background(), "", "kubectl", "taint", "node", node, startupTaintKey+"-") // it fails without the taint, as it should be
	})
	c.kubectl(t, "taint", "node", node, startupTaintKey+"=:NoSchedule")
	c.create(t, []claim{{name: "waits", gib: 1}}, pod{name: "waits", claim: "waits", node: node})
	c.unschedulable(t, "waits", "untolerated taint")
	if !slices.Contains(c.taints(t, node), startupTaintKey) {
		t.Fatal("the taint is gone, although the driver does not run on the node")
	}
	began := time.Now()
	back()
	c.awaitDriverOn(t, node, true)
	registered := time.Now()
	eventually(t, patience, "the taint removed", func() error {
		if slices.Contains(c.taints(t, node), startupTaintKey) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	c.measured("the driver registered until the taint was gone", registered)
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=condition=Ready", "pod/waits", atMost)
	c.measured("the driver started until the pod was ready", began)
}

// driverPod is the pod of the driver on a node; empty if there is none.
func (c *cluster) driverPod(t *testing.T, node string) string {
	t.Helper()
	return c.kubectl(t, "get", "pods", "--namespace="+namespaces["node"], "--selector=app=cinder-csi-node", "--field-selector=spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.name}")
}

// attachments are the VolumeAttachments of the driver to a node.
func (c *cluster) attachments(t *testing.T, node string) []string {
	t.Helper()
	return strings.Fields(c.kubectl(t, "get", "volumeattachments", "-o", fmt.Sprintf(`jsonpath={.items[?(@.spec.nodeName==%q)].metadata.name}`, node)))
}

func (c *cluster) awaitNoAttachment(t *testing.T, node string) {
	t.Helper()
	eventually(t, patience, "the volume detached from "+node, func() error {
		if left := c.attachments(t, node); len(left) > 0 {
			return fmt.Errorf("%d attachments are there", len(left))
		}
		return nil
	})
}

// drainHook ends the driver of a drained node while a volume is attached there, and no other takes its place, as in a shutdown. With the hook the
// driver stays until the volume is detached.
func drainHook(t *testing.T, c *cluster) {
	const node, other = "node-az1-2", "node-az1"
	c.start(t, []claim{{name: "moves", gib: 1}}, pod{name: "drained", claim: "moves", node: node})
	sum := c.write(t, "drained", "/data/file", "drained")
	c.cordon(t, node)

	c.leave(t, node)
	name := c.driverPod(t, node)
	eventually(t, patience, "the driver told to end", func() error {
		if c.kubectl(t, "get", "pod", name, "--namespace="+namespaces["node"], "-o", "jsonpath={.metadata.deletionTimestamp}") == "" {
			return fmt.Errorf("pod %s runs", name)
		}
		return nil
	})
	began := time.Now()
	c.kubectl(t, "delete", "pod", "drained", "--namespace="+c.namespace, atMost)
	if c.driverPod(t, node) != name {
		t.Fatal("the driver has ended while a pod with a volume ran on its node")
	}
	c.awaitNoAttachment(t, node)
	c.measured("the volume detached", began)
	c.kubectl(t, "wait", "pod/"+name, "--namespace="+namespaces["node"], "--for=delete", atMost)
	c.measured("the driver ended", began)
	c.start(t, nil, pod{name: "moved", claim: "moves", node: other})
	c.expectSum(t, "moved", "/data/file", sum)
	c.measured("the pod ready on another node", began)
}
