//go:build cluster

package cluster

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// pairRows selects rows of the matrix by their numbers: "3", "1-4".
var pairRows = flag.String("rows", "", "rows of TestPairs, as 3 or 1-4; all when empty")

// TestPairs installs a bundle for each row of the matrix, and uses what is switched on: `make test-cluster CASE=pairs`. It prints one line for each row.
func TestPairs(t *testing.T) {
	c := running(t)
	if left := c.kubectl(t, "get", "namespace", "--ignore-not-found", "-o", "name", namespaces["controller"], namespaces["node"], "cinder-csi-south", "pairs"); left != "" {
		t.Fatalf("an earlier run has left %q; remove it as the bundle's README says", left)
	}
	p := &pairs{cluster: c, imported: map[string]bool{}}
	p.checkRefused(t)
	p.prepare(t)
	began := time.Now()
	rows := matrix()
	first, last := selected(t, len(rows))
	for n := first; n <= last; n++ {
		name := fmt.Sprintf("%02d %s", n, rows[n-1])
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { p.row(t, n, rows[n-1]) })
	}
	fmt.Printf("pairs: rows %d to %d of %d in %.0f s\n", first, last, len(rows), time.Since(began).Seconds())
}

// selected are the first and the last row that -rows names.
func selected(t *testing.T, rows int) (first, last int) {
	t.Helper()
	if *pairRows == "" {
		return 1, rows
	}
	if n, _ := fmt.Sscanf(*pairRows, "%d-%d", &first, &last); n == 1 {
		last = first
	}
	if first < 1 || last < first || last > rows {
		t.Fatalf("-rows %s: want rows from 1 to %d", *pairRows, rows)
	}
	return first, last
}

// pairs is what all rows share.
type pairs struct {
	*cluster
	imported map[string]bool
}

// pairBundle is one of the bundles of a row.
type pairBundle struct {
	*bundle
	setting    setting
	driver     string
	controller string // namespace
	node       string // namespace
	class      string // a StorageClass of it
	snapshots  string // its VolumeSnapshotClass; with -backup that of backups
}

// row is the life of the bundles of one row. The line that it prints has the seconds of each step.
func (p *pairs) row(t *testing.T, n int, s setting) {
	c := *p.cluster
	c.work, c.namespace = t.TempDir(), "pairs"
	var times []string
	t.Cleanup(func() {
		result := "ok"
		if t.Failed() {
			result = "FAILED"
		}
		fmt.Printf("pairs: %2d %-100s | %s | %s\n", n, s, strings.Join(times, " "), result)
	})
	step := func(name string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		times = append(times, fmt.Sprintf("%s %.0f", name, time.Since(began).Seconds()))
	}
	var bundles []*pairBundle
	t.Cleanup(func() { removeByForce(t, &c, bundles) })
	t.Cleanup(func() { diagnosePairs(t, &c, bundles) })
	cloud := c.cloudOf(t, s)
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	step("generate", func() { bundles = c.generatePair(t, s, cloud) })
	for _, b := range bundles {
		c.loadImages(t, b.objects(t, "kustomize"), p.imported)
		audit.namespaces = append(audit.namespaces, b.controller, b.node)
	}
	platform := c.playPlatform(t, s)
	step("install", func() {
		for _, b := range bundles {
			b.installPair(t, platform, cloud)
		}
		for _, b := range bundles {
			b.awaitInstalled(t)
		}
	})
	c.makeNamespace(t)
	var reader *prometheus
	if s.monitored() {
		step("prometheus", func() { reader = c.startPrometheus(t, s, bundles) })
	}
	if s.on("policy") {
		step("policy", func() { c.checkPolicies(t, bundles) })
	}
	step("volume", func() {
		for _, b := range bundles {
			b.useVolume(t)
		}
	})
	if s.on("proxy") {
		cloud.checkProxied(t)
	}
	if s.on("placement") {
		c.checkPlaced(t, bundles)
	}
	if s.on("drift") {
		step("drift", func() {
			for _, b := range bundles {
				b.runDriftCheck(t)
			}
		})
	}
	if s.on("taint") {
		step("taint", func() {
			for _, b := range bundles {
				b.checkTaint(t)
			}
		})
	}
	if s.on("drain") {
		step("drain", func() {
			for _, b := range bundles {
				b.checkDrain(t)
			}
		})
	}
	if s.monitored() {
		step("alerts", func() { reader.check(t, bundles) })
		reader.remove(t)
	}
	c.kubectl(t, "delete", "namespace/"+c.namespace, atMost)
	audit.check(t)
	step("remove", func() {
		for _, b := range bundles {
			b.removePair(t)
		}
		c.expectStock(t, before)
	})
}

// generatePair generates the bundles of a row.
func (c *cluster) generatePair(t *testing.T, s setting, cloud *pairCloud) []*pairBundle {
	t.Helper()
	bundles := []*pairBundle{{
		setting: s, controller: namespaces["controller"], node: namespaces["node"], class: "standard", snapshots: "cinder-csi",
		driver: map[string]string{"vanilla": driverName, "adopt": driverName, "sideBySide": "cinder-csi.io"}[s["platform"]],
	}}
	if s["bundles"] == "2" {
		bundles = append(bundles, &pairBundle{
			setting: s, driver: southDriver, controller: "cinder-csi-south", node: "cinder-csi-south-node", class: southPrefix + "standard", snapshots: southDriver,
		})
	}
	for i, b := range bundles {
		text := testenv.Value(s.distribution(i > 0, cloud.ca))(t)
		dir := filepath.Join(c.work, fmt.Sprintf("bundle-%d", i+1))
		config := dir + ".yaml"
		testfile.Write(t, config, text, 0o600)
		c.run(t, "cinder-csi-generator", "generate", "--os-cloud", "lab-appcred", "--config", config, "--target", s.target(), "--format", "kustomize", "--output-dir", dir)
		b.bundle = c.bundleIn(t, dir)
	}
	cloud.writeFiles(t, c, s)
	return bundles
}

// installPair applies the bundle as its README says. What OpenShift's operators add is played.
func (b *pairBundle) installPair(t *testing.T, platform *platform, cloud *pairCloud) {
	t.Helper()
	byOperator := strings.Contains(b.readme, "Once the bundle is applied, this shows")
	if !byOperator {
		b.follow(t, "The credentials")
	} else {
		b.kubectl(t, "apply", "-f", b.dir+"/namespace.yaml")
	}
	if b.setting["openstack"] == "caConfigMap" {
		b.kubectl(t, "create", "configmap", caConfigMap, "--namespace="+b.controller, "--from-literal=ca.pem="+cloud.ca)
	}
	b.follow(t, "Apply, and look at what would change")
	if byOperator {
		args := []string{"create", "secret", "generic", "cinder-csi-credentials", "--namespace=" + b.controller, "--from-file=clouds.yaml=driver-clouds.yaml"}
		if b.setting.tls() { // as OpenShift 4.19 and later do
			args = append(args, "--from-literal=cacert="+cloud.ca)
		}
		b.kubectl(t, args...)
	}
	if b.setting.on("drift") {
		b.followDriftCheck(t)
	}
	if b.setting.metricsTLS() {
		platform.serveCertificates(t, b)
	}
}

// awaitInstalled waits for the pods, and for the driver on each node.
func (b *pairBundle) awaitInstalled(t *testing.T) {
	t.Helper()
	const soon = "--timeout=2m"
	b.kubectl(t, "rollout", "status", "deployment/cinder-csi-controller", "--namespace="+b.controller, soon)
	b.kubectl(t, "rollout", "status", "daemonset/cinder-csi-node", "--namespace="+b.node, soon)
	for _, node := range nodes {
		eventually(t, patience, "the driver "+b.driver+" in CSINode "+node, func() error {
			drivers := b.kubectl(t, "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}")
			if !slices.Contains(strings.Fields(drivers), b.driver) {
				return fmt.Errorf("it has the drivers %q", drivers)
			}
			return nil
		})
	}
}

// useVolume is the life of a volume: written on one node, read on the other one of its zone, copied by a snapshot, deleted.
func (b *pairBundle) useVolume(t *testing.T) {
	t.Helper()
	name := "volume-" + b.controller
	b.start(t, []claim{{name: name, gib: 1, class: b.class}}, pod{name: name, claim: name, node: "node-az1"})
	sum := b.write(t, name, "/data/file", name)
	b.deletePod(t, name)
	var claims []claim
	pods := []pod{{name: name + "-moved", claim: name, node: "node-az1-2"}}
	for _, class := range b.snapshotClasses() {
		copied := name + "-" + strings.TrimPrefix(class, b.snapshots)
		copied = strings.Trim(copied, "-") + "-copy"
		b.apply(t, fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %s, namespace: %s}
spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}
`, copied, b.namespace, class, name))
		b.kubectl(t, "wait", "volumesnapshot/"+copied, "--namespace="+b.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
		claims = append(claims, claim{name: copied, gib: 1, class: b.class, from: copied})
		pods = append(pods, pod{name: copied, claim: copied, node: "node-az1"})
	}
	b.start(t, claims, pods...)
	for _, p := range pods {
		b.expectSum(t, p.name, "/data/file", sum)
	}
	b.kubectl(t, "delete", "pods", "--all", "--namespace="+b.namespace, atMost)
	b.kubectl(t, "delete", "pvc", "--all", "--namespace="+b.namespace, atMost)
	if len(claims) > 0 {
		b.kubectl(t, "delete", "volumesnapshots", "--all", "--namespace="+b.namespace, atMost)
	}
	eventually(t, patience, "every volume deleted", func() error { return b.nothingLeft(t.Context()) })
}

// snapshotClasses are the VolumeSnapshotClasses that the bundle has. Without the feature there are none.
func (b *pairBundle) snapshotClasses() []string {
	switch b.setting["snapshots"] {
	case "snapshots":
		return []string{b.snapshots}
	case "backup":
		return []string{b.snapshots, b.snapshots + "-backup"}
	}
	return nil
}

// checkTaint gives a node the taint of a driver that is not ready. The controller removes it, because the driver is.
func (b *pairBundle) checkTaint(t *testing.T) {
	t.Helper()
	const node = "node-az1-2"
	key := b.driver + "/agent-not-ready"
	b.kubectl(t, "taint", "node", node, key+"=:NoSchedule")
	t.Cleanup(func() { _, _, _ = b.try(context.Background(), "", "kubectl", "taint", "node", node, key+"-") })
	eventually(t, patience, "the taint "+key+" removed", func() error {
		if slices.Contains(b.taints(t, node), key) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}

// checkDrain ends the driver's pod of a node that is not drained. Its hook asks the API server, and the pod ends at once.
func (b *pairBundle) checkDrain(t *testing.T) {
	t.Helper()
	name := b.kubectl(t, "get", "pods", "--namespace="+b.node, "--selector=app=cinder-csi-node", "--field-selector=spec.nodeName=node-az1-2", "-o", "jsonpath={.items[0].metadata.name}")
	b.kubectl(t, "delete", "pod", name, "--namespace="+b.node, atMost)
	b.awaitInstalled(t)
}

// followDriftCheck makes the Secret of the drift check as the README's section says. It has a sentence for a CA that the bundle does not have.
func (b *pairBundle) followDriftCheck(t *testing.T) {
	t.Helper()
	if b.setting["openstack"] != "caSecret" {
		b.follow(t, "The drift check")
		return
	}
	b.kubectl(t, "create", "secret", "generic", "cinder-csi-drift-check", "--namespace="+b.controller, "--from-file=clouds.yaml=reader.yaml", "--from-file=cacert=ca.pem")
}

// runDriftCheck starts a Job as the how-to says, and waits for its success.
func (b *pairBundle) runDriftCheck(t *testing.T) {
	t.Helper()
	b.kubectl(t, "create", "job", "drift-now", "--namespace="+b.controller, "--from=cronjob/cinder-csi-drift-check")
	eventually(t, patience, "the drift check of "+b.controller, func() error {
		conditions := b.kubectl(t, "get", "job", "drift-now", "--namespace="+b.controller, "-o", `jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {end}`)
		switch {
		case strings.Contains(conditions, "Complete"):
			return nil
		case strings.Contains(conditions, "Failed"):
			log, _, err := b.try(t.Context(), "", "kubectl", "logs", "--namespace="+b.controller, "--selector=app=cinder-csi-drift-check", "--tail=-1")
			t.Fatalf("the drift check of %s failed: %s %v", b.controller, log, err)
		}
		return fmt.Errorf("its Job has the conditions %q", conditions)
	})
}

// checkPlaced fails for a pod of a controller, or of a drift check, on another node than the placement allows.
func (c *cluster) checkPlaced(t *testing.T, bundles []*pairBundle) {
	t.Helper()
	for _, b := range bundles {
		for line := range strings.Lines(c.kubectl(t, "get", "pods", "--namespace="+b.controller, "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}`)) {
			if name, node, _ := strings.Cut(strings.TrimSpace(line), " "); !slices.Contains(placedNodes, node) {
				t.Errorf("pod %s/%s is on node %s; the placement allows %v", b.controller, name, cmp.Or(node, "none"), placedNodes)
			}
		}
	}
}

// removePair removes the bundle as its README says. Nothing of it may be left.
func (b *pairBundle) removePair(t *testing.T) {
	t.Helper()
	b.follow(t, "Remove")
	for _, namespace := range []string{b.controller, b.node} {
		b.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", atMost)
	}
	for _, node := range nodes {
		eventually(t, patience, "the end of "+b.driver+" in CSINode "+node, func() error {
			if drivers := b.kubectl(t, "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}"); slices.Contains(strings.Fields(drivers), b.driver) {
				return fmt.Errorf("it has the drivers %q", drivers)
			}
			return nil
		})
	}
}

// diagnosePairs prints what a person would look at first after a failure.
func diagnosePairs(t *testing.T, c *cluster, bundles []*pairBundle) {
	c.diagnose(t)
	if !t.Failed() {
		return
	}
	for _, b := range bundles {
		out, _, err := c.try(context.Background(), "", "kubectl", "logs", "--namespace="+b.controller, "--selector=app=cinder-csi-controller", "--all-containers", "--prefix", "--tail=30", "--max-log-requests=30")
		t.Logf("%s %v\n%s", b.controller, err, out)
	}
}

// removeByForce leaves the next row a clean cluster after a failure.
func removeByForce(t *testing.T, c *cluster, bundles []*pairBundle) {
	if !t.Failed() {
		return
	}
	remove := func(args ...string) {
		if _, _, err := c.try(context.Background(), "", "kubectl", append([]string{"delete", "--ignore-not-found", atMost}, args...)...); err != nil {
			t.Log(err)
		}
	}
	remove("namespace", c.namespace, "monitoring", "openshift-monitoring")
	remove("clusterrole/pairs-prometheus", "clusterrolebinding/pairs-prometheus")
	if err := await(context.Background(), patience, func() error { return c.nothingLeft(context.Background()) }); err != nil {
		t.Log(err)
	}
	for _, b := range bundles {
		if b.bundle != nil {
			remove("-k", b.dir)
		}
	}
}
