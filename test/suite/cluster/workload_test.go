//go:build cluster

package cluster

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// workspace is the namespace of the walk's own pods and claims. A scenario has one of its own.
const workspace = "walk"

// growing is a class of the test's own, for XFS. Linux lets only CAP_SYS_RESOURCE grow a mounted ext4, and a container that stands for a machine
// may lack it.
const growing = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: walk-growing}
provisioner: ` + driverName + `
parameters: {csi.storage.k8s.io/fstype: xfs}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
`

// claim is a PersistentVolumeClaim.
type claim struct {
	name       string
	gib        int
	class      string // the default class when empty
	mode       string // volume mode; Filesystem when empty
	access     string // access mode; ReadWriteOnce when empty
	from       string // a VolumeSnapshot, or none
	clone      string // another claim, or none
	attributes string // a VolumeAttributesClass, or none
}

func (c claim) manifest(namespace string) string {
	var more strings.Builder
	if c.from != "" {
		fmt.Fprintf(&more, "\n  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: %s}", c.from)
	}
	if c.clone != "" {
		fmt.Fprintf(&more, "\n  dataSource: {kind: PersistentVolumeClaim, name: %s}", c.clone)
	}
	if c.class != "" {
		more.WriteString("\n  storageClassName: " + c.class)
	}
	if c.attributes != "" {
		more.WriteString("\n  volumeAttributesClassName: " + c.attributes)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: %s}
spec:
  accessModes: [%s]
  volumeMode: %s
  resources: {requests: {storage: %dGi}}%s
`, c.name, namespace, cmp.Or(c.access, "ReadWriteOnce"), cmp.Or(c.mode, "Filesystem"), c.gib, more.String())
}

// pod is one container that waits, with one claim: a file system at /data, or a device at /dev/data.
type pod struct {
	name, claim string
	node        string   // any when empty
	zone        string   // any when empty
	block       bool     // of every claim
	more        []string // further claims, at /data-0 or /dev/data-0 and so on
}

func (p pod) manifest(namespace string) string {
	var selector []string
	if p.node != "" {
		selector = append(selector, "kubernetes.io/hostname: "+p.node)
	}
	if p.zone != "" {
		selector = append(selector, zoneLabel+": "+p.zone)
	}
	kind, format := "volumeMounts", "{name: data%[1]s, mountPath: /data%[1]s}"
	if p.block {
		kind, format = "volumeDevices", "{name: data%[1]s, devicePath: /dev/data%[1]s}"
	}
	var uses, volumes []string
	for i, claim := range append([]string{p.claim}, p.more...) {
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprintf("-%d", i-1)
		}
		uses = append(uses, fmt.Sprintf(format, suffix))
		volumes = append(volumes, fmt.Sprintf("{name: data%s, persistentVolumeClaim: {claimName: %s}}", suffix, claim))
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  nodeSelector: {%s}
  containers:
  - name: workload
    image: cluster-bed/workload:1
    imagePullPolicy: Never
    args: [wait]
    %s: [%s]
  volumes: [%s]
`, p.name, namespace, strings.Join(selector, ", "), kind, strings.Join(uses, ", "), strings.Join(volumes, ", "))
}

// zoneLabel is the label by which the driver tells the scheduler the zone of a node.
const zoneLabel = "topology." + driverName + "/zone"

// start makes the claims and pods and waits until every pod is ready.
func (c *cluster) start(t *testing.T, claims []claim, pods ...pod) {
	t.Helper()
	c.create(t, claims, pods...)
	args := []string{"wait", "--namespace=" + c.namespace, "--for=condition=Ready", atMost}
	for _, pod := range pods {
		args = append(args, "pod/"+pod.name)
	}
	c.kubectl(t, args...)
}

// create makes the claims and pods.
func (c *cluster) create(t *testing.T, claims []claim, pods ...pod) {
	t.Helper()
	var manifest strings.Builder
	for _, claim := range claims {
		manifest.WriteString(claim.manifest(c.namespace))
	}
	for _, pod := range pods {
		manifest.WriteString(pod.manifest(c.namespace))
	}
	c.apply(t, manifest.String())
}

func (c *cluster) deletePod(t *testing.T, name string) {
	t.Helper()
	c.kubectl(t, "delete", "pod", name, "--namespace="+c.namespace, atMost)
}

// exec runs a command of the program workload in the pod.
func (c *cluster) exec(t *testing.T, pod string, args ...string) string {
	t.Helper()
	return c.kubectl(t, append([]string{"exec", pod, "--namespace=" + c.namespace, "--", "/bin/workload"}, args...)...)
}

// written is how many MiB the test writes to a volume.
const written = 64

// write fills a file or device with bytes made from the seed and gives their sum, read back.
func (c *cluster) write(t *testing.T, pod, file, seed string) string {
	t.Helper()
	c.exec(t, pod, "write", file, seed, strconv.Itoa(written))
	return c.sum(t, pod, file)
}

func (c *cluster) sum(t *testing.T, pod, file string) string {
	t.Helper()
	return c.exec(t, pod, "sum", file, strconv.Itoa(written))
}

// expectSum fails unless the pod reads the bytes that were written.
func (c *cluster) expectSum(t *testing.T, pod, file, want string) {
	t.Helper()
	if got := c.sum(t, pod, file); got != want {
		t.Fatalf("pod %s reads other bytes from %s: the sum is %s, want %s", pod, file, got, want)
	}
}
