//go:build cluster

package cluster

import (
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
	name  string
	gib   int
	class string // the default class when empty
	mode  string // volume mode; Filesystem when empty
	from  string // a VolumeSnapshot, or none
}

func (c claim) manifest(namespace string) string {
	mode, source, class := "Filesystem", "", ""
	if c.mode != "" {
		mode = c.mode
	}
	if c.from != "" {
		source = fmt.Sprintf("\n  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: %s}", c.from)
	}
	if c.class != "" {
		class = "\n  storageClassName: " + c.class
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: %s}
spec:
  accessModes: [ReadWriteOnce]
  volumeMode: %s
  resources: {requests: {storage: %dGi}}%s%s
`, c.name, namespace, mode, c.gib, class, source)
}

// pod is one container that waits, with one claim: a file system at /data, or a device at /dev/data.
type pod struct {
	name, claim string
	node        string // any when empty
	block       bool
}

func (p pod) manifest(namespace string) string {
	volume, selector := "volumeMounts: [{name: data, mountPath: /data}]", ""
	if p.block {
		volume = "volumeDevices: [{name: data, devicePath: /dev/data}]"
	}
	if p.node != "" {
		selector = fmt.Sprintf("\n  nodeSelector: {kubernetes.io/hostname: %s}", p.node)
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false%s
  containers:
  - name: workload
    image: cluster-bed/workload:1
    imagePullPolicy: Never
    args: [wait]
    %s
  volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]
`, p.name, namespace, selector, volume, p.claim)
}

// start makes the claims and pods and waits until every pod is ready.
func (c *cluster) start(t *testing.T, claims []claim, pods ...pod) {
	t.Helper()
	var manifest strings.Builder
	for _, claim := range claims {
		manifest.WriteString(claim.manifest(c.namespace))
	}
	args := []string{"wait", "--namespace=" + c.namespace, "--for=condition=Ready", "--timeout=300s"}
	for _, pod := range pods {
		manifest.WriteString(pod.manifest(c.namespace))
		args = append(args, "pod/"+pod.name)
	}
	c.apply(t, manifest.String())
	c.kubectl(t, args...)
}

func (c *cluster) deletePod(t *testing.T, name string) {
	t.Helper()
	c.kubectl(t, "delete", "pod", name, "--namespace="+c.namespace, "--timeout=120s")
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
