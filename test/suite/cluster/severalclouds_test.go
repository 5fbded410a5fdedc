//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// otherCloud is a simulated cloud beside the real one, and the bundle for it. Its zones have the names of the real ones.
type otherCloud struct {
	name   string // in the page's keys, and of the label of its nodes
	listen string // an address of this machine that the nodes reach
	node   string // the one that has the label
	zone   string // of the node
	ports  string // the page's key monitoring.nodePorts
}

var otherClouds = []otherCloud{
	{"south", "198.18.144.1:23211", "node-az1-2", "az1", "29611"},
	{"west", "198.18.144.1:23212", "node-az2", "az2", "29621"},
}

// sameZones is the simulated cloud. It has the zones of the bed.
const sameZones = `
zones: {compute: [az1, az2], volume: [az1, az2]}
volumeTypes: [{name: standard}]
defaultVolumeType: standard
`

// TestSeveralClouds has a bundle for the real cloud and one for each of two simulated clouds, with the keys of docs/how-to/several-clouds.md. A
// claim of each becomes a volume of its own cloud. The servers of the nodes are in the real cloud alone, so no simulated volume reaches a pod.
func TestSeveralClouds(t *testing.T) {
	c := running(t)
	c.namespace = "several"
	t.Cleanup(func() { c.diagnose(t) })
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	imported := map[string]bool{}
	first := &pairBundle{setting: setting{}, driver: driverName, controller: namespaces["controller"], node: namespaces["node"], class: "standard"}
	first.bundle = c.bundleFor(t, "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: prod}\nspec:\n  images: {registry: mirror.invalid}\n")
	bundles := []*pairBundle{first}
	for _, o := range otherClouds {
		bundles = append(bundles, c.bundleOf(t, o))
	}
	t.Cleanup(func() { removeByForce(t, c, bundles) })
	began := time.Now()
	for _, b := range bundles {
		c.loadImages(t, b.objects(t, "kustomize"), imported)
		audit.namespaces = append(audit.namespaces, b.controller, b.node)
		if b == first {
			b.installPair(t, nil, nil)
			b.awaitInstalled(t)
		} else {
			b.follow(t, "The credentials")
			b.follow(t, "Apply, and look at what would change")
		}
	}
	for i, o := range otherClouds {
		bundles[i+1].awaitOn(t, o.node)
	}
	fmt.Printf("measured: clouds    %-47s %6.1f s\n", "three bundles installed", time.Since(began).Seconds())
	checkClash(t, bundles[1])
	c.makeNamespace(t)
	for i, o := range otherClouds {
		bundles[i+1].provision(t, c, o)
	}
	first.useVolume(t) // in the end it deletes every pod and claim of the namespace
	for i, o := range otherClouds {
		bundles[i+1].expectGone(t, o)
	}
	c.kubectl(t, "delete", "namespace/"+c.namespace, atMost)
	audit.check(t)
	for _, b := range slices.Backward(bundles) {
		b.removePair(t)
		if b != first {
			first.awaitInstalled(t)
		}
	}
	c.expectStock(t, before)
	fmt.Printf("measured: clouds    %-47s %6.1f s\n", "everything removed", time.Since(began).Seconds())
}

// bundleFor generates a bundle from a configuration, in a directory of its own, where the commands of its README run.
func (c *cluster) bundleFor(t *testing.T, config string) *bundle {
	t.Helper()
	own := *c
	own.work = t.TempDir()
	testfile.Write(t, filepath.Join(own.work, "distribution.yaml"), config, 0o600)
	dir := filepath.Join(own.work, "bundle")
	own.run(t, "cinder-csi-generator", "generate", "--os-cloud", "lab-appcred", "--config", "distribution.yaml", "--target", "vanilla", "--format", "kustomize", "--output-dir", dir)
	return own.bundleIn(t, dir)
}

// bundleOf starts the simulated cloud and generates its bundle. The configuration is the page's, with the name of the cloud.
func (c *cluster) bundleOf(t *testing.T, o otherCloud) *pairBundle {
	t.Helper()
	own := *c
	own.openstack = own.startSimulated(t, o)
	own.env = append(slices.Clone(c.env), "OS_CLIENT_CONFIG_FILE="+filepath.Join(own.openstack, "clouds.yaml"))
	page := testfile.Read(t, filepath.Join(c.repo, "docs", "how-to", "several-clouds.md"))
	_, section, found := strings.Cut(string(page), "\n## Two bundles in one cluster\n")
	blocks := readme.Fenced(section, "yaml")
	if !found || len(blocks) == 0 {
		t.Fatal("the page has no configuration of a second bundle")
	}
	config := strings.NewReplacer("south", o.name, "29611", o.ports).Replace(blocks[0]) + "\n  images: {registry: mirror.invalid}\n"
	c.kubectl(t, "label", "node", o.node, "cloud="+o.name)
	t.Cleanup(func() { _, _, _ = c.try(context.Background(), "", "kubectl", "label", "node", o.node, "cloud-") })
	return &pairBundle{
		bundle: own.bundleFor(t, config), setting: setting{}, driver: o.name + ".cinder.example.com",
		controller: "cinder-csi-" + o.name, node: "cinder-csi-" + o.name + "-node", class: o.name + "-standard",
	}
}

// startSimulated runs the cloud until the end of the test, and gives the directory of its clouds.yaml. There the driver's credential has the name
// that it has on the bed.
func (c *cluster) startSimulated(t *testing.T, o otherCloud) string {
	t.Helper()
	dir := t.TempDir()
	shape := filepath.Join(dir, "cloud.yaml")
	testfile.Write(t, shape, sameZones, 0o600)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(c.repo, "bin", "openstack-sim"), "--listen", o.listen, "--dir", dir, "--cloud", shape)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	file := filepath.Join(dir, "clouds.yaml")
	eventually(t, time.Minute, "the simulated cloud "+o.name, func() error {
		_, err := os.Stat(filepath.Join(dir, "url"))
		return err
	})
	text := testfile.Text(t, file)
	renamed := strings.Replace(text, "  sim-appcred:", "  lab-appcred:", 1)
	testfile.Write(t, file, renamed, 0o600)
	return dir
}

// awaitOn waits for the pods, and for the driver on the one node of its cloud.
func (b *pairBundle) awaitOn(t *testing.T, node string) {
	t.Helper()
	b.kubectl(t, "rollout", "status", "deployment/cinder-csi-controller", "--namespace="+b.controller, atMost)
	b.kubectl(t, "rollout", "status", "daemonset/cinder-csi-node", "--namespace="+b.node, atMost)
	for _, name := range nodes {
		want := name == node
		eventually(t, patience, fmt.Sprintf("the driver %s in CSINode %s: %t", b.driver, name, want), func() error {
			drivers := strings.Fields(b.kubectl(t, "get", "csinode", name, "-o", "jsonpath={.spec.drivers[*].name}"))
			if slices.Contains(drivers, b.driver) != want {
				return fmt.Errorf("it has the drivers %q", drivers)
			}
			return nil
		})
	}
}

// checkClash has doctor refuse a bundle for the same ports and names as b's before it is applied.
func checkClash(t *testing.T, b *pairBundle) {
	t.Helper()
	text := testfile.Text(t, filepath.Join(b.work, "distribution.yaml"))
	clashing := strings.NewReplacer("south.cinder.example.com", "east.cinder.example.com", "cinder-csi-south", "cinder-csi-east", "south-", "east-").Replace(text)
	testfile.Write(t, filepath.Join(b.work, "clashing.yaml"), clashing, 0o600)
	out, messages, err := b.try(t.Context(), "", "cinder-csi-generator", "doctor", "--os-cloud", "lab-appcred", "--config", "clashing.yaml", "--target", "vanilla")
	if !strings.Contains(out+messages, "cluster.ports") || !strings.Contains(out+messages, "cinder-csi-south-node") {
		t.Errorf("doctor does not say that a third bundle would use the ports of %s (%v):\n%s%s", b.node, err, out, messages)
	}
}

// simulatedVolume is a volume as the simulated cloud shows it.
type simulatedVolume struct {
	Status string `json:"status"`
	Zone   string `json:"availability_zone"`
}

// volumes are those of the cloud of the bundle.
func (b *pairBundle) volumes(t *testing.T) map[string]simulatedVolume {
	t.Helper()
	found := map[string]simulatedVolume{}
	for _, id := range strings.Fields(b.run(t, "/usr/bin/openstack", "--os-cloud", "lab-appcred", "volume", "list", "-f", "value", "-c", "ID")) {
		var v simulatedVolume
		testenv.Must(t, json.Unmarshal([]byte(b.run(t, "/usr/bin/openstack", "--os-cloud", "lab-appcred", "volume", "show", id, "-f", "json")), &v))
		found[id] = v
	}
	return found
}

// provision makes a claim of the bundle's class for a pod on the node of its cloud. The volume is made in that cloud, in the zone of the node.
func (b *pairBundle) provision(t *testing.T, c *cluster, o otherCloud) {
	t.Helper()
	c.create(t, []claim{{name: o.name, gib: 1, class: b.class}}, pod{name: o.name, claim: o.name, node: o.node})
	c.kubectl(t, "wait", "persistentvolumeclaim/"+o.name, "--namespace="+c.namespace, "--for=jsonpath={.status.phase}=Bound", atMost)
	name := c.kubectl(t, "get", "persistentvolumeclaim", o.name, "--namespace="+c.namespace, "-o", "jsonpath={.spec.volumeName}")
	driver := c.kubectl(t, "get", "persistentvolume", name, "-o", "jsonpath={.spec.csi.driver}")
	id := c.kubectl(t, "get", "persistentvolume", name, "-o", "jsonpath={.spec.csi.volumeHandle}")
	if v := b.volumes(t)[id]; driver != b.driver || v.Zone != o.zone {
		t.Errorf("claim %s: want driver %s and a volume of cloud %s in zone %s, got driver %q and volume %s %+v", o.name, b.driver, o.name, o.zone, driver, id, v)
	}
}

// expectGone waits for the end of the volume of the claim that is deleted, although it never reached the pod.
func (b *pairBundle) expectGone(t *testing.T, o otherCloud) {
	t.Helper()
	eventually(t, patience, "no volume in cloud "+o.name, func() error {
		if left := b.volumes(t); len(left) > 0 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}
