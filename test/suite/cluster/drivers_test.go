//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workloads are a driver's controller and node pods. Their label app is the name.
type workloads struct {
	deployment, daemonset []string // name and namespace
	container             string   // of the driver, in both
}

var (
	ownWorkloads      = workloads{[]string{"cinder-csi-controller", "cinder-csi"}, []string{"cinder-csi-node", "cinder-csi-node"}, "driver"}
	upstreamWorkloads = workloads{[]string{"csi-cinder-controllerplugin", "kube-system"}, []string{"csi-cinder-nodeplugin", "kube-system"}, "cinder-csi-plugin"}
)

// of gives the name and namespace of the controller or of the node role.
func (w workloads) of(half string) (name, namespace string) {
	found := w.deployment
	if half == "node" {
		found = w.daemonset
	}
	return found[0], found[1]
}

// awaitDriver waits until both workloads are rolled out and every node has the driver.
func (c *cluster) awaitDriver(t *testing.T, w workloads) {
	t.Helper()
	c.rollout(t, w)
	for _, node := range nodes {
		eventually(t, patience, "the driver in CSINode "+node, func() error {
			drivers := c.kubectl(t, "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}")
			if !slices.Contains(strings.Fields(drivers), driverName) {
				return fmt.Errorf("it has the drivers %q", drivers)
			}
			return nil
		})
	}
}

// rollout waits until every pod of the workloads is ready.
func (c *cluster) rollout(t *testing.T, w workloads) {
	t.Helper()
	c.kubectl(t, "rollout", "status", "deployment/"+w.deployment[0], "--namespace="+w.deployment[1], atMost)
	c.kubectl(t, "rollout", "status", "daemonset/"+w.daemonset[0], "--namespace="+w.daemonset[1], atMost)
}

// awaitNoPods waits until no pod of the workloads is left.
func (c *cluster) awaitNoPods(t *testing.T, w workloads) {
	t.Helper()
	for _, of := range [][]string{w.deployment, w.daemonset} {
		eventually(t, patience, "the end of the pods of "+of[0], func() error {
			if left := c.kubectl(t, "get", "pods", "--namespace="+of[1], "--selector=app="+of[0], "-o", "name"); left != "" {
				return fmt.Errorf("there are %s", strings.Fields(left))
			}
			return nil
		})
	}
}

// removeWorkloads deletes the pods of a driver and leaves its rights, its classes and its CSIDriver.
func (c *cluster) removeWorkloads(t *testing.T, w workloads) {
	t.Helper()
	c.kubectl(t, "delete", "deployment/"+w.deployment[0], "--namespace="+w.deployment[1], "--ignore-not-found", atMost)
	c.kubectl(t, "delete", "daemonset/"+w.daemonset[0], "--namespace="+w.daemonset[1], "--ignore-not-found", atMost)
	c.awaitNoPods(t, w)
}

// useFor is what a driver must still do after a replacement: a claim is made, its pod runs, and both go.
func (c *cluster) useFor(t *testing.T, name, class string) {
	t.Helper()
	c.start(t, []claim{{name: name, gib: 1, class: class}}, pod{name: name, claim: name, node: "node-az1"})
	c.write(t, name, "/data/file", name)
	c.deletePod(t, name)
	c.kubectl(t, "delete", "pvc", name, "--namespace="+c.namespace, atMost)
}
