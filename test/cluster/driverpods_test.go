//go:build cluster

package cluster

import "testing"

// rolledOut waits until every pod of the driver is ready: what follows a disruption finds it as it was.
func (c *cluster) rolledOut(t *testing.T) {
	t.Helper()
	c.kubectl(t, "rollout", "status", "deployment/cinder-csi-controller", "--namespace="+namespaces["controller"], "--timeout=180s")
	c.kubectl(t, "rollout", "status", "daemonset/cinder-csi-node", "--namespace="+namespaces["node"], "--timeout=180s")
}
