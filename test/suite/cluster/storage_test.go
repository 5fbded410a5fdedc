//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// storageScenarios use the driver as its users do, while nothing disturbs it.
var storageScenarios = []scenario{
	{"a claim waits for its pod and gets a volume in its zone", placedWithItsPod},
	{"a StatefulSet keeps its data when a pod is deleted and when it moves", statefulSet},
	{"a raw block volume is written on two nodes at once", sharedBlock},
	{"ReadWriteOncePod: the second pod waits for the first", oncePod},
	{"a claim is cloned, and clone and original are independent", cloned},
	{"a backup is restored in the other zone", backupInOtherZone},
	{"a VolumeAttributesClass changes the type and metadata of a volume", attributesChange},
	{"the scheduler respects the attach limit of a node", attachLimit},
	{"the scheduler respects the capacity of a class", capacity},
	{"a raw block volume grows while it is in use", blockGrows},
}

// zones are those of the nodes.
var zones = []string{"az1", "az2"}

// placedWithItsPod has the scheduler choose by the zone label that the driver reports. Cinder has the last say about where the volume is.
func placedWithItsPod(t *testing.T, c *cluster) {
	var claims []claim
	for _, zone := range zones {
		claims = append(claims, claim{name: "in-" + zone, gib: 1})
	}
	c.create(t, claims)
	for _, zone := range zones {
		if phase := c.kubectl(t, "get", "pvc", "in-"+zone, "--namespace="+c.namespace, "-o", "jsonpath={.status.phase}"); phase != "Pending" {
			t.Errorf("claim in-%s is %s before it has a pod; want it to wait for one", zone, phase)
		}
		name := "in-" + zone
		c.start(t, nil, pod{name: name, claim: name, zone: zone})
		node := c.nodeOf(t, name)
		label := c.kubectl(t, "get", "node", node, "-o", "jsonpath={.metadata.labels."+strings.ReplaceAll(zoneLabel, ".", `\.`)+"}")
		volume := c.volumeOf(t, name)
		if inCinder := c.cinder(t, volume, "availability_zone"); label != zone || inCinder != zone {
			t.Errorf("pod of zone %s: its node %s is in %q, its volume %s in %q", zone, node, label, volume, inCinder)
		}
		c.write(t, name, "/data/file", zone)
	}
}

// statefulSet is two replicas in the zone that has two nodes.
func statefulSet(t *testing.T, c *cluster) {
	c.apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      nodeSelector: {%s: az1}
      containers:
      - name: workload
        image: cluster-bed/workload:1
        imagePullPolicy: Never
        args: [wait]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, c.namespace, zoneLabel))
	c.kubectl(t, "rollout", "status", "statefulset/db", "--namespace="+c.namespace, atMost)
	sums := map[string]string{}
	for _, name := range []string{"db-0", "db-1"} {
		sums[name] = c.write(t, name, "/data/file", name)
	}
	if sums["db-0"] == sums["db-1"] {
		t.Fatal("both replicas have the same bytes")
	}
	c.replacePod(t, "db-1")
	c.expectSum(t, "db-1", "/data/file", sums["db-1"])

	from := c.nodeOf(t, "db-0")
	c.cordon(t, from)
	began := time.Now()
	c.replacePod(t, "db-0")
	c.measured("- pod deleted until it is ready on the other node", began)
	if to := c.nodeOf(t, "db-0"); to == from {
		t.Errorf("db-0 is on %s again, which is cordoned", to)
	}
	for name, sum := range sums {
		c.expectSum(t, name, "/data/file", sum)
	}
}

// replacePod deletes a pod of a controller and waits until the next one of that name is ready.
func (c *cluster) replacePod(t *testing.T, name string) {
	t.Helper()
	c.deletePod(t, name)
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=create", "pod/"+name, atMost)
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=condition=Ready", "pod/"+name, atMost)
}

// cordon keeps new pods from a node until the end of the test.
func (c *cluster) cordon(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() {
		if _, _, err := c.try(context.Background(), "", "kubectl", "uncordon", node); err != nil {
			t.Error(err)
		}
	})
	c.kubectl(t, "cordon", node)
}

func (c *cluster) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	return c.kubectl(t, "get", "pod", pod, "--namespace="+c.namespace, "-o", "jsonpath={.spec.nodeName}")
}

// volumeOf is the ID in Cinder of the volume of a claim.
func (c *cluster) volumeOf(t *testing.T, claim string) string {
	t.Helper()
	name := c.kubectl(t, "get", "pvc", claim, "--namespace="+c.namespace, "-o", "jsonpath={.spec.volumeName}")
	return c.kubectl(t, "get", "pv", name, "-o", "jsonpath={.spec.csi.volumeHandle}")
}

// cinder is what Cinder shows of a volume in a column of `openstack volume show`.
func (c *cluster) cinder(t *testing.T, volume, column string) string {
	t.Helper()
	return strings.TrimSpace(c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "volume", "show", volume, "-f", "value", "-c", column))
}

// awaitAvailable waits until Cinder shows a volume as available.
func (c *cluster) awaitAvailable(t *testing.T, volume string) {
	t.Helper()
	eventually(t, patience, "volume "+volume+" available", func() error {
		if status := c.cinder(t, volume, "status"); status != "available" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
}

func blockGrows(t *testing.T, c *cluster) {
	c.start(t, []claim{{name: "block", gib: 1, mode: "Block"}}, pod{name: "block", claim: "block", block: true})
	sum := c.write(t, "block", "/dev/data", "block")
	c.kubectl(t, "patch", "pvc", "block", "--namespace="+c.namespace, "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	c.kubectl(t, "wait", "pvc/block", "--namespace="+c.namespace, "--for=jsonpath={.status.capacity.storage}=3Gi", atMost)
	if size := c.exec(t, "block", "size", "/dev/data"); size != strconv.Itoa(3<<30) {
		t.Errorf("the claim has 3Gi, and the pod's device %s bytes", size)
	}
	c.expectSum(t, "block", "/dev/data", sum)
}
