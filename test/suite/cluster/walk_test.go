//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// namespaces of a vanilla bundle, by the driver's half.
var namespaces = map[string]string{"controller": "cinder-csi", "node": "cinder-csi-node"}

const driverName = "cinder.csi.openstack.org"

// TestBundle walks through the life of one bundle after the other, in both forms that the generator writes.
func TestBundle(t *testing.T) {
	imported := map[string]bool{}
	for _, format := range []string{"kustomize", "helm"} {
		t.Run(format, func(t *testing.T) { walk(t, format, imported) })
	}
}

// walk is one bundle's life in the cluster. Each step builds on the one before, so the first failure ends it.
func walk(t *testing.T, format string, imported map[string]bool) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	if left := c.kubectl(t, "get", "namespace", "--ignore-not-found", "-o", "name", namespaces["controller"], namespaces["node"], c.namespace); left != "" {
		t.Fatalf("an earlier run has left %q; `make cluster-down openstack-down` removes everything", left)
	}
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	b := c.generate(t, format, distribution)
	step := timed("%-9s %-47s", format)
	step("images imported on three nodes", func() { c.loadImages(t, b.objects(t, format), imported) })
	step("credentials by the README; doctor finds no error", func() { b.prepare(t) })
	step("installed by the README, all pods ready", func() { b.install(t) })
	c.makeNamespace(t)
	step("Pod Security enforced in both namespaces", func() { c.checkPodSecurity(t) })
	if format == "helm" {
		step("helm test: a volume created, attached, mounted", func() { b.run(t, "helm", "test", "cinder-csi", "--namespace", namespaces["controller"]) })
	}
	var sums map[string]string
	step("claim and pod in each zone, bytes written", func() { sums = c.writeInEachZone(t) })
	step("pod moved to the zone's other node, bytes read", func() { c.movePod(t, sums["az1"]) })
	step("volume expanded while in use", func() { c.expand(t, sums["az1"]) })
	step("snapshot, restored to a new claim, bytes read", func() { c.restoreSnapshot(t, sums["az1"]) })
	step("raw block: written, moved, read", func() { c.useBlockVolume(t) })
	step("ten claims and pods at once", func() { c.startMany(t) })
	step("all deleted, controllers killed on the way", func() { c.deleteMany(t) })
	// Before the rights go: a pod that ends meets refusals while they are removed.
	step("no call of our service accounts denied", func() { audit.check(t) })
	step("removed by the README, nothing left", func() { b.uninstall(t) })
	step("nothing left in Cinder, Nova, mounts, devices", func() { before.compare(t, c.takeStock(t)) })
}

// objects is what the bundle makes, as text.
func (b *bundle) objects(t *testing.T, format string) string {
	t.Helper()
	if format == "helm" {
		return b.run(t, "helm", "template", "charts/cinder-csi", "-f", b.dir+"/values.yaml")
	}
	return b.run(t, "kubectl", "kustomize", b.dir)
}

// prepare does what comes before an installation. doctor exits with 1 on an error; warnings are printed.
func (b *bundle) prepare(t *testing.T) {
	b.follow(t, "The credentials")
	t.Log(b.run(t, "cinder-csi-generator", "doctor", "--os-cloud", "lab-appcred", "--config", "distribution.yaml", "--target", "vanilla"))
}

func (b *bundle) install(t *testing.T) {
	b.follow(t, "Apply, and look at what would change")
	b.awaitDriver(t, ownWorkloads)
}

// installOnce installs the bundle, unless an earlier run has kept it.
func (b *bundle) installOnce(t *testing.T) {
	t.Helper()
	if b.installed(t) {
		return
	}
	b.loadImages(t, b.objects(t, "kustomize"), map[string]bool{})
	b.follow(t, "The credentials")
	b.install(t)
}

// timed returns a function that does a step and prints how long it took, below the words.
func timed(format string, words ...any) func(name string, do func()) {
	return func(name string, do func()) {
		began := time.Now()
		do()
		fmt.Printf("measured: "+format+" %6.1f s\n", append(slices.Clone(words), name, time.Since(began).Seconds())...)
	}
}

// makeNamespace makes the test's namespace. Pods are refused there until the controller manager has made its service account.
func (c *cluster) makeNamespace(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create", "namespace", c.namespace)
	c.kubectl(t, "wait", "--namespace="+c.namespace, "--for=create", "serviceaccount/default", atMost)
}

// checkPodSecurity has a privileged pod refused where the bundle's labels forbid it, and only there.
func (c *cluster) checkPodSecurity(t *testing.T) {
	c.refusesPrivileged(t)
	if err := c.askPrivileged(t, namespaces["node"]); err != nil {
		t.Errorf("a privileged pod in namespace %s: %v; want it accepted", namespaces["node"], err)
	}
}

// refusesPrivileged has Pod Security refuse a privileged pod in the controller's namespace.
func (c *cluster) refusesPrivileged(t *testing.T) {
	if err := c.askPrivileged(t, namespaces["controller"]); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		t.Errorf("a privileged pod in namespace %s: %v; want it refused by Pod Security", namespaces["controller"], err)
	}
}

// askPrivileged asks the API server for a privileged pod, by a dry run.
func (c *cluster) askPrivileged(t *testing.T, namespace string) error {
	_, _, err := c.try(t.Context(), fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: privileged, namespace: %s}
spec:
  automountServiceAccountToken: false
  containers: [{name: c, image: none, securityContext: {privileged: true}}]
`, namespace), "kubectl", "create", "--dry-run=server", "-f", "-")
	return err
}

// writeInEachZone gives the sums of what is on the volumes in-az1 and in-az2.
func (c *cluster) writeInEachZone(t *testing.T) map[string]string {
	c.apply(t, growing)
	c.start(t, []claim{{name: "in-az1", gib: 1, class: "walk-growing"}, {name: "in-az2", gib: 1}},
		pod{name: "in-az1", claim: "in-az1", node: "node-az1"}, pod{name: "in-az2", claim: "in-az2", node: "node-az2"})
	sums := map[string]string{}
	for _, zone := range []string{"az1", "az2"} {
		volume := c.kubectl(t, "get", "pvc", "in-"+zone, "--namespace="+c.namespace, "-o", "jsonpath={.spec.volumeName}")
		affinity := c.kubectl(t, "get", "pv", volume, "-o", "jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}")
		if affinity != zone {
			t.Fatalf("the volume of the pod in zone %s is for %q", zone, affinity)
		}
		sums[zone] = c.write(t, "in-"+zone, "/data/file", zone)
	}
	if sums["az1"] == sums["az2"] {
		t.Fatal("both volumes have the same bytes")
	}
	return sums
}

func (c *cluster) movePod(t *testing.T, want string) {
	c.deletePod(t, "in-az1")
	c.start(t, nil, pod{name: "moved", claim: "in-az1", node: "node-az1-2"})
	c.expectSum(t, "moved", "/data/file", want)
}

func (c *cluster) expand(t *testing.T, want string) {
	c.kubectl(t, "patch", "pvc", "in-az1", "--namespace="+c.namespace, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	c.kubectl(t, "wait", "pvc/in-az1", "--namespace="+c.namespace, "--for=jsonpath={.status.capacity.storage}=2Gi", atMost)
	size := testenv.Value(strconv.ParseInt(c.exec(t, "moved", "size", "/data/file"), 10, 64))(t)
	// A file system keeps some of its device for itself.
	if size < 3<<29 {
		t.Fatalf("the claim has 2Gi and the pod's file system %d bytes", size)
	}
	c.expectSum(t, "moved", "/data/file", want)
}

func (c *cluster) restoreSnapshot(t *testing.T, want string) {
	class := c.kubectl(t, "get", "volumesnapshotclasses", "-o", "jsonpath={.items[0].metadata.name}")
	c.apply(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: saved, namespace: %s}
spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: in-az1}}
`, c.namespace, class))
	c.kubectl(t, "wait", "volumesnapshot/saved", "--namespace="+c.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
	// What is written after the snapshot is not in it.
	c.write(t, "moved", "/data/file", "later")
	c.start(t, []claim{{name: "restored", gib: 2, class: "walk-growing", from: "saved"}}, pod{name: "restored", claim: "restored"})
	c.expectSum(t, "restored", "/data/file", want)
}

func (c *cluster) useBlockVolume(t *testing.T) {
	c.start(t, []claim{{name: "block", gib: 1, mode: "Block"}}, pod{name: "block", claim: "block", node: "node-az1", block: true})
	if size := c.exec(t, "block", "size", "/dev/data"); size != strconv.Itoa(1<<30) {
		t.Fatalf("the device of 1Gi has %s bytes", size)
	}
	sum := c.write(t, "block", "/dev/data", "block")
	c.deletePod(t, "block")
	c.start(t, nil, pod{name: "block-moved", claim: "block", node: "node-az1-2", block: true})
	c.expectSum(t, "block-moved", "/dev/data", sum)
}

func (c *cluster) startMany(t *testing.T) {
	var claims []claim
	var pods []pod
	for i := range 10 {
		name := fmt.Sprintf("many-%d", i)
		claims, pods = append(claims, claim{name: name, gib: 1}), append(pods, pod{name: name, claim: name})
	}
	c.start(t, claims, pods...)
}

// deleteMany deletes all pods, claims and snapshots, and kills both controllers once the first volume is deleted. One pod keeps its claim in use until
// then. So the new controllers always have a volume to detach and delete, also on a machine that deletes all others between two looks.
func (c *cluster) deleteMany(t *testing.T) {
	const last = "many-9"
	all := c.volumes(t)
	c.kubectl(t, "delete", "pods", "--field-selector=metadata.name!="+last, "--namespace="+c.namespace, "--wait=false")
	c.kubectl(t, "delete", "volumesnapshots,pvc", "--all", "--namespace="+c.namespace, "--wait=false")
	var left []string
	eventually(t, patience, "the first volume deleted", func() error {
		if left = c.volumes(t); len(left) == len(all) {
			return fmt.Errorf("all %d volumes are there", len(left))
		}
		return nil
	})
	if len(left) == 0 {
		t.Fatalf("no volume is left for the new controllers, although pod %s uses one: its claim must not be deleted before the pod", last)
	}
	c.kubectl(t, "delete", "pods", "--namespace="+namespaces["controller"], "--selector=app=cinder-csi-controller", "--force", "--grace-period=0", "--wait=false")
	t.Logf("the controllers were killed with %d of %d volumes left", len(left), len(all))
	c.kubectl(t, "delete", "pod", last, "--namespace="+c.namespace, "--wait=false")
	eventually(t, patience, "every volume deleted", func() error {
		if left := c.volumes(t); len(left) > 0 {
			return fmt.Errorf("%d are there: %v", len(left), left)
		}
		return nil
	})
	c.kubectl(t, "delete", "namespace/"+c.namespace, "storageclass/walk-growing", atMost)
}

// volumes are the names of the driver's PersistentVolumes for claims of the test's namespace: others may work on the cluster too.
func (c *cluster) volumes(t *testing.T) []string {
	t.Helper()
	const columns = `jsonpath={range .items[*]}{.spec.csi.driver} {.metadata.name} {.spec.claimRef.namespace}{"\n"}{end}`
	var names []string
	for line := range strings.Lines(c.kubectl(t, "get", "pv", "-o", columns)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == driverName && fields[2] == c.namespace {
			names = append(names, fields[1])
		}
	}
	return names
}

func (b *bundle) uninstall(t *testing.T) {
	b.follow(t, "Remove")
	for _, namespace := range namespaces {
		b.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", atMost)
	}
	kinds := b.kubectl(t, "api-resources", "--verbs=list,delete", "-o", "name")
	left := b.kubectl(t, "get", strings.Join(strings.Fields(kinds), ","), "--all-namespaces", "--selector=app.kubernetes.io/name=cinder-csi", "-o", "name")
	if left != "" {
		t.Errorf("objects of the bundle are left:\n%s", left)
	}
	for _, node := range nodes {
		eventually(t, patience, "the driver's end in CSINode "+node, func() error {
			if drivers := b.kubectl(t, "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}"); drivers != "" {
				return fmt.Errorf("it has the drivers %q", drivers)
			}
			return nil
		})
	}
}
