//go:build cluster

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const builtInNamespace = "openshift-cluster-csi-drivers"

var builtInWorkloads = workloads{
	[]string{"openstack-cinder-csi-driver-controller", builtInNamespace}, []string{"openstack-cinder-csi-driver-node", builtInNamespace}, "csi-driver",
}

// operatorObjects are the objects that OpenShift's operator makes, for this cluster.
func (p *platform) operatorObjects(t *testing.T) string {
	t.Helper()
	text := testfile.Text(t, "testdata/openshift-operator.yaml")
	p.compareWithParity(t, text)
	return strings.NewReplacer("NAMESPACE", builtInNamespace, "CLUSTER", "prod-x7k2p").Replace(text)
}

// compareWithParity has the objects be those of the parity test: the static ones and those that OpenShift makes for them.
func (p *platform) compareWithParity(t *testing.T, objects string) {
	t.Helper()
	text := testfile.Read(t, filepath.Join(p.repo, "generator", "verify", "testdata", "openshift-parity.yaml"))
	var parity struct{ Deploys struct{ Both, Made []string } }
	testenv.Must(t, yaml.Unmarshal(text, &parity))
	var have []string
	for _, document := range strings.Split(objects, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		testenv.Must(t, yaml.Unmarshal([]byte(document), &o))
		have = append(have, o.Kind+"/"+strings.ReplaceAll(o.Metadata.Name, "NAMESPACE", builtInNamespace))
	}
	// The test makes these by itself, as other parts of OpenShift do.
	have = append(have, "Secret/openstack-cloud-credentials", "Secret/openstack-cinder-csi-driver-controller-metrics-serving-cert", "ClusterCSIDriver/"+driverName)
	want := slices.Concat(parity.Deploys.Both, parity.Deploys.Made)
	slices.Sort(have)
	slices.Sort(want)
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Fatalf("testdata/openshift-operator.yaml has other objects than the operator deploys (-want +got):\n%s", diff)
	}
}

// installBuiltIn starts OpenShift's operator, which installs its driver, and plays what OpenShift adds. The program of the driver is PLUGIN, that of upstream;
// without it, it is this project's, under the operator's names and flags.
func (p *platform) installBuiltIn(t *testing.T, imported map[string]bool) {
	t.Helper()
	objects := p.operatorObjects(t)
	const image = "mirror.invalid/openshift/cinder-csi-plugin:1"
	archive := filepath.Join(p.work, "built-in.tar")
	program := cmp.Or(os.Getenv("PLUGIN"), filepath.Join(p.repo, "bin", "linux-amd64", "cinder-csi-driver"))
	p.build(t, "go", "-C", p.repo, "run", "./tools/image/cmd/oci-image", "-driver", program, "-name", image, "-output", archive)
	p.archives[image] = archive
	p.loadImages(t, objects, imported)
	p.apply(t, `
{apiVersion: operator.openshift.io/v1, kind: ClusterCSIDriver, metadata: {name: `+driverName+`}, spec: {managementState: Managed, logLevel: Normal, operatorLogLevel: Normal}}
---
{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: storage}, spec: {}}
---
{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, spec: {platformSpec: {type: OpenStack}}}
`)
	p.kubectl(t, "patch", "infrastructure", "cluster", "--subresource=status", "--type=merge", "-p",
		`{"status": {"infrastructureName": "prod-x7k2p", "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable", "apiServerURL": "", "apiServerInternalURI": "", "etcdDiscoveryDomain": "", "cpuPartitioning": "None"}}`)
	p.operate(t, objects)
	eventually(t, patience, "namespace "+builtInNamespace, func() error {
		_, err := p.within("kubectl", "get", "service", "openstack-cinder-csi-driver-controller-metrics", "--namespace="+builtInNamespace)
		return err
	})
	p.giveRange(t, builtInNamespace)
	p.kubectl(t, "create", "secret", "generic", "openstack-cloud-credentials", "--namespace="+builtInNamespace, "--from-file=clouds.yaml=driver-clouds.yaml")
	p.serveCertificates(t, &pairBundle{bundle: &bundle{cluster: p.cluster}, controller: builtInNamespace})
	p.awaitDriver(t, builtInWorkloads)
}

// operate is the operator: it writes its objects again and again, as long as a person lets it.
func (p *platform) operate(t *testing.T, objects string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var operator sync.WaitGroup
	operator.Go(func() {
		for ctx.Err() == nil {
			state, _, err := p.try(ctx, "", "kubectl", "get", "clustercsidriver", driverName, "-o", "jsonpath={.spec.managementState}")
			if err == nil && state == "Managed" {
				_, _, _ = p.try(ctx, objects, "kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=csi-operator", "-f", "-")
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	})
	t.Cleanup(func() {
		stop()
		operator.Wait()
		if _, _, err := p.try(context.Background(), objects, "kubectl", "delete", "--ignore-not-found", atMost, "-f", "-"); err != nil {
			t.Error(err)
		}
	})
}

// takeOver has a bundle beside the built-in driver first, then in its place while pods write, and gives everything back. What `adopt` prints is what runs.
func (p *platform) takeOver(t *testing.T, imported map[string]bool) {
	own := *p
	c := *p.cluster
	c.work, c.namespace, own.cluster = t.TempDir(), "takeover", &c
	p = &own
	t.Cleanup(func() { c.diagnose(t) })
	before := c.takeStock(t)
	step := timed("openshift %-9s %-55s", "adopt")
	beside := c.generateFor(t, "standalone", "kustomize", "prod", strings.Replace(openShiftDistribution, "adopt", "sideBySide", 1))
	adopted := c.generateFor(t, "standalone", "kustomize", "adopted", openShiftDistribution)
	c.loadImages(t, beside.objects(t, "kustomize")+adopted.objects(t, "kustomize"), imported)
	step("the operator has installed the built-in driver", func() { p.installBuiltIn(t, imported) })
	c.makeNamespace(t)
	p.giveRange(t, c.namespace)
	var u *use
	step("two pods write to volumes of the built-in driver", func() { u = c.startUse(t) })

	step("bundle installed beside it (sideBySide)", func() {
		p.applyEarly(t, beside)
		p.giveAll(t, beside)
		c.rolledOut(t)
	})
	u.undisturbed(t, "the installation beside the built-in driver")
	step("a volume of each driver on the same nodes", func() { p.useBoth(t) })
	step("the bundle beside it removed by its README", func() {
		beside.follow(t, "Remove")
		for _, namespace := range namespaces {
			c.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", atMost)
		}
	})
	u.undisturbed(t, "the removal of the bundle beside the built-in driver")

	text := c.run(t, "cinder-csi-generator", "adopt", adopted.dir)
	run := func(part string) {
		t.Helper()
		commands := printed(text, part)
		if len(commands) == 0 {
			t.Fatalf("adopt prints no commands below %q:\n%s", part, text)
		}
		for _, command := range commands {
			if strings.HasPrefix(command, "kubectl create -f built-in-csidriver.json") && p.operatorMade(t) {
				continue // only if the operator does not create it
			}
			command = strings.NewReplacer("cinder-csi-generator doctor --os-cloud CLOUD --config distribution.yaml", "cinder-csi-generator doctor --os-cloud lab-appcred --config adopted.yaml --target standalone || true").Replace(command)
			t.Logf("%s\n%s", command, c.run(t, "bash", "-eo", "pipefail", "-c", command))
			if strings.Contains(command, "credentialsrequest.yaml") {
				p.giveRange(t, namespaces["controller"])
				p.giveRange(t, namespaces["node"])
				p.giveCredentials(t, adopted, namespaces["controller"])
			}
		}
	}
	step("adopt: checks, credentials, operator Unmanaged", func() { run("Check first"); run("Before anything stops") })
	step("adopt: the swap, until every node has this driver", func() {
		run("The swap")
		p.serveCertificates(t, &pairBundle{bundle: adopted, controller: namespaces["controller"]})
		p.giveTrustedCA(t, namespaces["controller"])
		c.awaitDriver(t, ownWorkloads)
	})
	u.undisturbed(t, "the swap")
	step("volumes of before move, a new one lives and goes", func() { u.move(t); c.useFor(t, "adopted", "standard-csi") })
	step("the way back, until every node has the built-in driver", func() {
		run("The way back")
		c.awaitDriver(t, builtInWorkloads)
	})
	u.undisturbed(t, "the way back")
	step("given back: volumes move, a new one lives and goes", func() { u.move(t); c.useFor(t, "given-back", "standard-csi") })
	u.end(t)
	c.kubectl(t, "delete", "namespace", c.namespace, atMost)
	c.kubectl(t, "patch", "clustercsidriver", driverName, "--type=merge", "-p", `{"spec":{"managementState":"Unmanaged"}}`)
	c.removeWorkloads(t, builtInWorkloads)
	c.kubectl(t, "delete", "-k", adopted.dir, "--ignore-not-found", atMost)
	before.compare(t, c.takeStock(t))
}

// operatorMade waits until the operator has created its CSIDriver, for the two minutes that adopt names.
func (p *platform) operatorMade(t *testing.T) bool {
	t.Helper()
	return await(t.Context(), 2*time.Minute, func() error {
		_, err := p.within("kubectl", "get", "csidriver", driverName)
		return err
	}) == nil
}

// giveAll gives a bundle what OpenShift's operators add.
func (p *platform) giveAll(t *testing.T, b *bundle) {
	t.Helper()
	p.giveCredentials(t, b, namespaces["controller"])
	p.serveCertificates(t, &pairBundle{bundle: b, controller: namespaces["controller"]})
	p.giveTrustedCA(t, namespaces["controller"])
}

// useBoth has a pod with a volume of each driver on one node, and moves it to the other node of the zone.
func (p *platform) useBoth(t *testing.T) {
	t.Helper()
	for _, node := range nodes {
		eventually(t, patience, "both drivers in CSINode "+node, func() error {
			drivers := strings.Fields(p.kubectl(t, "get", "csinode", node, "-o", "jsonpath={.spec.drivers[*].name}"))
			if !slices.Contains(drivers, driverName) || !slices.Contains(drivers, "cinder-csi.io") {
				return fmt.Errorf("it has %q", drivers)
			}
			return nil
		})
	}
	class := strings.Fields(p.kubectl(t, "get", "storageclasses", "-o", `jsonpath={.items[?(@.provisioner=="cinder-csi.io")].metadata.name}`))[0]
	both := pod{name: "both", claim: "ours", more: []string{"theirs"}, node: "node-az1"}
	p.start(t, []claim{{name: "ours", gib: 1, class: class}, {name: "theirs", gib: 1, class: "standard-csi"}}, both)
	sums := []string{p.write(t, "both", "/data/file", "ours"), p.write(t, "both", "/data-0/file", "theirs")}
	p.deletePod(t, "both")
	both.node = "node-az1-2"
	p.start(t, nil, both)
	p.expectSum(t, "both", "/data/file", sums[0])
	p.expectSum(t, "both", "/data-0/file", sums[1])
	p.deletePod(t, "both")
	p.kubectl(t, "delete", "pvc", "ours", "theirs", "--namespace="+p.namespace, atMost)
	eventually(t, patience, "the volumes of both drivers deleted", func() error {
		out := p.kubectl(t, "get", "persistentvolumes", "-o", "jsonpath={.items[*].spec.claimRef.name}")
		if regexp.MustCompile(`\b(ours|theirs)\b`).MatchString(out) {
			return fmt.Errorf("there are those of %s", out)
		}
		return nil
	})
}
