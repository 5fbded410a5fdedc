//go:build cluster

package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// cloudCredentialOperator is the namespace of the operator, where a bundle puts its CredentialsRequest.
const cloudCredentialOperator = "openshift-cloud-credential-operator"

// openShiftDistribution has what a bundle for a stand-alone OpenShift can have. The bed's API server listens on port 443.
const openShiftDistribution = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: openshift}
spec:
  kubernetesVersion: "1.37"
  clusterID: prod-x7k2p
  openshift: {coexistence: adopt, controlPlaneTopology: HighlyAvailable, clusterNetworks: [198.18.144.0/20, 198.18.128.0/20]}
  monitoring: {kind: ServiceMonitor}
  networkPolicy: {enabled: true, apiServerPorts: [443]}
  trustedCA: true
  images:
    registry: mirror.invalid
`

// TestOpenShift has the cluster of three nodes judge pods as OpenShift's admission does: `make test-cluster CASE=openshift`. The bundles for OpenShift live
// there from the first apply to the removal, and take over from the operator's own objects. What OpenShift's operators do is played, and comes late.
func TestOpenShift(t *testing.T) {
	c := running(t)
	p := c.standInForOpenShift(t)
	imported := map[string]bool{}
	t.Run("kustomize with requested credentials", func(t *testing.T) { p.walk(t, "kustomize", true, imported) })
	t.Run("helm in mode Manual", func(t *testing.T) { p.walk(t, "helm", false, imported) })
	t.Run("hosted control plane", func(t *testing.T) { p.hosted(t, imported) })
	t.Run("beside the built-in driver and in its place", func(t *testing.T) { p.takeOver(t, imported) })
}

// standInForOpenShift gives the cluster OpenShift's CRDs and the stand-in for its admission, and the nodes their roles. All of it goes with the test.
func (c *cluster) standInForOpenShift(t *testing.T) *platform {
	t.Helper()
	p := &platform{cluster: c}
	crds := filepath.Join(c.repo, "bin", "crds")
	for _, name := range []string{
		"monitoring.coreos.com_servicemonitors", "monitoring.coreos.com_prometheusrules", "0000_03_cloud-credential-operator_01_crd",
		"0000_03_config-operator_01_securitycontextconstraints.crd", "openshift/0000_50_csi-driver_01_clustercsidrivers-Default.crd",
		"openshift/0000_00_cluster-version-operator_01_clusteroperators.crd", "openshift/0000_10_config-operator_01_infrastructures-Default.crd",
	} {
		p.lend(t, filepath.Join(crds, name+".yaml"))
	}
	p.kubectl(t, "wait", "--for=condition=Established", "customresourcedefinitions", "--all", atMost)
	p.standIn(t)
	// A namespace has its range some time after it was created: see giveRange.
	p.kubectl(t, "delete", "mutatingadmissionpolicybinding", "openshift-namespace")
	return p
}

// standIn applies the stand-in, gives the nodes their roles, and waits until a pod is refused. A new namespace has a range at once.
func (p *platform) standIn(t *testing.T) {
	t.Helper()
	for _, node := range nodes {
		p.role(t, node, "worker")
	}
	for _, node := range placedNodes {
		p.role(t, node, "control-plane")
		p.role(t, node, "master")
	}
	p.lend(t, filepath.Join(p.repo, "test", "suite", "openshift", "standin.yaml"))
	p.afterwards(t, "delete", "namespace", cloudCredentialOperator)
	eventually(t, patience, "the stand-in gives a range", func() error {
		out, _, err := p.try(t.Context(), "", "kubectl", "create", "namespace", "range", "--dry-run=server", "-o", "yaml")
		if err == nil && !strings.Contains(out, "openshift.io/sa.scc.uid-range") {
			return fmt.Errorf("a new namespace is %s", out)
		}
		return err
	})
	p.kubectl(t, "create", "namespace", cloudCredentialOperator)
	eventually(t, patience, "the stand-in for the admission", func() error {
		_, _, err := p.try(t.Context(), hostNetworkPod, "kubectl", "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "Host network is not allowed") {
			return fmt.Errorf("a pod with the network of its host: %v", err)
		}
		return nil
	})
}

// hostNetworkPod must not fit the constraint restricted-v2. The namespace is one that OpenShift does not exempt.
const hostNetworkPod = `
apiVersion: v1
kind: Pod
metadata: {name: refused, namespace: ` + cloudCredentialOperator + `}
spec: {hostNetwork: true, automountServiceAccountToken: false, containers: [{name: c, image: none}]}
`

// lend applies a file until the test ends.
func (p *platform) lend(t *testing.T, file string) {
	t.Helper()
	p.kubectl(t, "apply", "--server-side", "-f", file)
	p.afterwards(t, "delete", "--ignore-not-found", "-f", file)
}

func (p *platform) role(t *testing.T, node, role string) {
	t.Helper()
	p.kubectl(t, "label", "--overwrite", "node", node, "node-role.kubernetes.io/"+role+"=")
	p.afterwards(t, "label", "node", node, "node-role.kubernetes.io/"+role+"-")
}

// afterwards runs kubectl when the test ends.
func (p *platform) afterwards(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if _, _, err := p.try(context.Background(), "", "kubectl", args...); err != nil {
			t.Error(err)
		}
	})
}

// giveRange does what cluster-policy-controller does for a new namespace. It adds the ranges of users and groups and the SELinux level, and those
// labels of Pod Security that nobody else has set. The length of the name decides which range.
func (p *platform) giveRange(t *testing.T, namespace string) {
	t.Helper()
	first := 1_000_000_000 + 10_000*len(namespace)
	p.kubectl(t, "annotate", "--overwrite", "namespace", namespace, fmt.Sprintf("openshift.io/sa.scc.uid-range=%d/10000", first),
		fmt.Sprintf("openshift.io/sa.scc.supplemental-groups=%d/10000", first), "openshift.io/sa.scc.mcs=s0:c26,c5")
	var labels struct {
		Metadata struct{ Labels map[string]string }
	}
	testenv.Must(t, json.Unmarshal([]byte(p.kubectl(t, "get", "namespace", namespace, "-o", "json")), &labels))
	// By kubectl label: kubectl apply --server-side would take from the object what makes it one of kubectl apply. OpenShift's controller does not.
	label := []string{"label", "namespace", namespace, "--field-manager=pod-security-admission-label-synchronization-controller"}
	for _, mode := range []string{"audit", "warn"} {
		for suffix, value := range map[string]string{"": "restricted", "-version": "latest"} {
			if key := "pod-security.kubernetes.io/" + mode + suffix; labels.Metadata.Labels[key] == "" {
				label = append(label, key+"="+value)
			}
		}
	}
	if len(label) > 4 {
		p.kubectl(t, label...)
	}
}

// applyAs applies a manifest as another controller, and takes no field from anybody.
func (p *platform) applyAs(t *testing.T, manager, manifest string) {
	t.Helper()
	if _, _, err := p.try(t.Context(), manifest, "kubectl", "apply", "--server-side", "--field-manager="+manager, "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// awaitEvent waits for an event in a namespace that has a text.
func (p *platform) awaitEvent(t *testing.T, namespace, text string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("an event with %q in namespace %s", text, namespace), func() error {
		if out := p.kubectl(t, "get", "events", "--namespace="+namespace, "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`); !strings.Contains(out, text) {
			return fmt.Errorf("the events are %s", out)
		}
		return nil
	})
}

// giveCredentials does what the Cloud Credential Operator does for a CredentialsRequest: a copy of the cluster's own credentials.
func (p *platform) giveCredentials(t *testing.T, b *bundle, namespace string) {
	t.Helper()
	names := p.kubectl(t, "get", "credentialsrequests", "--namespace="+cloudCredentialOperator, "-o", "jsonpath={.items[*].spec.secretRef.namespace}/{.items[*].spec.secretRef.name}")
	if want := namespace + "/cinder-csi-credentials"; names != want {
		t.Fatalf("the CredentialsRequests name the Secrets %q, want %q", names, want)
	}
	b.kubectl(t, "create", "secret", "generic", "cinder-csi-credentials", "--namespace="+namespace, "--from-file=clouds.yaml=driver-clouds.yaml")
}

// giveTrustedCA does what the network operator does for a ConfigMap with its label. The certificates are those of this machine.
func (p *platform) giveTrustedCA(t *testing.T, namespace string) {
	t.Helper()
	name := p.kubectl(t, "get", "configmaps", "--namespace="+namespace, "--selector=config.openshift.io/inject-trusted-cabundle=true", "-o", "jsonpath={.items[*].metadata.name}")
	text, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil || name == "" {
		t.Fatalf("the ConfigMap for trusted certificates is %q: %v", name, err)
	}
	data := testenv.Value(json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": name, "namespace": namespace}, "data": fields{"ca-bundle.crt": string(text)},
	}))(t)
	p.applyAs(t, "cluster-network-operator", string(data))
}

// generateFor makes a bundle of a Distribution for a target.
func (c *cluster) generateFor(t *testing.T, target, format, name, distribution string) *bundle {
	t.Helper()
	dir := filepath.Join(c.work, name)
	testfile.Write(t, dir+".yaml", distribution, 0o600)
	c.run(t, "cinder-csi-generator", "generate", "--os-cloud", "lab-appcred", "--config", dir+".yaml", "--target", target, "--format", format, "--output-dir", dir)
	return c.bundleIn(t, dir)
}

// walk is the life of a standalone bundle under the stand-in. With requested, the Cloud Credential Operator makes the Secret; else it is in mode Manual.
func (p *platform) walk(t *testing.T, format string, requested bool, imported map[string]bool) {
	own := *p
	c := *p.cluster
	c.work, own.cluster = t.TempDir(), &c
	p = &own
	t.Cleanup(func() { c.diagnose(t) })
	before, audit := c.takeStock(t), c.openAuditLog(t)
	distribution := openShiftDistribution
	if !requested {
		distribution = strings.Replace(distribution, "  images:", "  credentials: {request: disabled}\n  images:", 1)
	}
	b := c.generateFor(t, "standalone", format, "prod", distribution)
	step := timed("openshift %-9s %-55s", format)
	c.loadImages(t, b.objects(t, format), imported)
	step("applied: no range, no Secret, no certificate, no CA", func() { p.applyEarly(t, b) })
	step("range, certificate, CA and Secret come late", func() { p.comeLate(t, b, requested) })
	c.makeNamespace(t)
	p.giveRange(t, c.namespace)
	step("Pod Security enforced in both namespaces", func() { p.checkAdmitted(t) })
	var sums map[string]string
	step("claim and pod in each zone, bytes written", func() { sums = c.writeInEachZone(t) })
	step("volume moved to the zone's other node, bytes read", func() { c.movePod(t, sums["az1"]) })
	step("volume expanded while in use", func() { c.expand(t, sums["az1"]) })
	step("snapshot, restored to a new claim, bytes read", func() { c.restoreSnapshot(t, sums["az1"]) })
	step("Secret changed: read again without a restart", func() { p.changeSecret(t) })
	step("upgraded while pods use volumes", func() {
		now := c.generateFor(t, "standalone", format, "next", strings.Replace(distribution, "  images:\n", "  images:\n    driver: {tag: next}\n", 1))
		c.loadImages(t, now.objects(t, format), imported)
		now.follow(t, applySection)
		c.rolledOut(t)
		c.expectSum(t, "moved", "/data/file", c.write(t, "moved", "/data/file", "after the upgrade"))
		b = now
	})
	step("ten claims and pods at once", func() { c.startMany(t) })
	step("all deleted, controllers killed on the way", func() { c.deleteMany(t) })
	step("no call of our service accounts denied", func() { audit.check(t) })
	step("removed by the README, nothing left", func() { b.uninstall(t) })
	step("nothing left in Cinder, Nova, mounts, devices", func() { before.compare(t, c.takeStock(t)) })
}

const applySection = "Apply, and look at what would change"

// applyEarly applies the bundle before OpenShift's operators have done anything: the pods are refused until the namespace has a range.
func (p *platform) applyEarly(t *testing.T, b *bundle) {
	t.Helper()
	b.follow(t, applySection)
	p.awaitEvent(t, namespaces["controller"], "openshift.io/sa.scc.uid-range")
	p.giveRange(t, namespaces["controller"])
	p.giveRange(t, namespaces["node"])
}

// comeLate has each thing that the controller waits for come after the pods, one after the other. The node pods need none of them.
func (p *platform) comeLate(t *testing.T, b *bundle, requested bool) {
	t.Helper()
	controller := namespaces["controller"]
	p.kubectl(t, "rollout", "status", "daemonset/cinder-csi-node", "--namespace="+namespaces["node"], atMost)
	p.awaitEvent(t, controller, `secret "cinder-csi-credentials" not found`)
	if requested {
		p.giveCredentials(t, b, controller)
	} else {
		b.follow(t, "The credentials")
	}
	p.awaitEvent(t, controller, `secret "cinder-csi-controller-metrics-tls" not found`)
	p.serveCertificates(t, &pairBundle{bundle: b, controller: controller})
	p.giveTrustedCA(t, controller)
	p.awaitDriver(t, ownWorkloads)
}

// checkAdmitted compares the constraint and the user that each pod of the bundle got with what it requires and with the range of its namespace.
func (p *platform) checkAdmitted(t *testing.T) {
	t.Helper()
	p.refusesPrivileged(t)
	if err := p.askPrivileged(t, namespaces["node"]); err == nil || !strings.Contains(err.Error(), "Privileged containers are not allowed") {
		t.Errorf("a privileged pod that requires no constraint in namespace %s: %v; want it refused by restricted-v2", namespaces["node"], err)
	}
	for half, want := range map[string]string{"controller": "restricted-v2", "node": "privileged"} {
		namespace := namespaces[half]
		out := p.kubectl(t, "get", "pods", "--namespace="+namespace, "-o", `jsonpath={range .items[*]}{.metadata.annotations.openshift\.io/scc} {.spec.securityContext.runAsUser}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			constraint, user, _ := strings.Cut(strings.TrimSpace(line), " ")
			if first := fmt.Sprint(1_000_000_000 + 10_000*len(namespace)); constraint != want || half == "controller" && user != first {
				t.Errorf("a pod in namespace %s has the constraint %s and the user %q; want %s, and %s for the controller", namespace, constraint, user, want, first)
			}
		}
	}
}

// changeSecret replaces the credentials as the Cloud Credential Operator does when an administrator has changed those of the cluster.
func (p *platform) changeSecret(t *testing.T) {
	t.Helper()
	before := p.allDriverPods(t)
	text := p.secretText(t)
	made := p.ownCredential(t, "openshift-changed")
	p.reload(t, func() error { return p.setSecret(made) })
	p.useFor(t, "changed", "")
	p.reload(t, func() error { return p.setSecret(text) })
	p.expectNoRestart(t, before)
}

const hostedNamespace = "clusters-hosted"

// hostedDistribution is of a hosted cluster. Its guest is the same cluster, so that its nodes are real: what stands between the two is not shown here.
const hostedDistribution = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: hosted}
spec:
  kubernetesVersion: "1.37"
  hypershift: {infraID: prod-x7k2p, platform: OpenStack}
  driver: {serverMetadata: {role: k8s-node}} # the servers of the bed have no tag of HyperShift
  namespaces: {controller: ` + hostedNamespace + `}
  monitoring: {kind: ServiceMonitor}
  images:
    registry: mirror.invalid
`

// hosted has both planes of a hypershift bundle on the cluster. The management plane is admitted in a namespace that is HyperShift's.
func (p *platform) hosted(t *testing.T, imported map[string]bool) {
	own := *p
	c := *p.cluster
	c.work, c.namespace, own.cluster = t.TempDir(), "hosted", &c
	p = &own
	before := c.takeStock(t)
	began := time.Now()
	b := &pairBundle{bundle: c.generateFor(t, "hypershift", "kustomize", "hosted", hostedDistribution), controller: hostedNamespace, node: "cinder-csi", driver: "cinder-csi.io", class: "cinder-csi-standard", snapshots: "cinder-csi", setting: setting{"snapshots": "snapshots"}}
	t.Cleanup(func() { diagnosePairs(t, &c, []*pairBundle{b}) })
	c.loadImages(t, b.run(t, "kubectl", "kustomize", b.dir+"/management")+b.run(t, "kubectl", "kustomize", b.dir+"/guest"), imported)
	kubeconfig := testfile.Read(t, filepath.Join(c.dir, "admin.kubeconfig"))
	// What HyperShift makes: the namespace, the PriorityClass, the pull secret, and the kubeconfig of the guest.
	c.apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {hypershift.openshift.io/hosted-control-plane: "true", pod-security.kubernetes.io/enforce: restricted}, annotations: {openshift.io/node-selector: ""}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: hypershift-control-plane}, value: 100000000}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull-secret, namespace: %[1]s}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": {}}'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: service-network-admin-kubeconfig, namespace: %[1]s}, data: {kubeconfig: %[2]s}}
`, hostedNamespace, base64.StdEncoding.EncodeToString(kubeconfig)))
	p.afterwards(t, "delete", "priorityclass", "hypershift-control-plane", "--ignore-not-found")
	b.follow(t, applySection)
	p.awaitEvent(t, hostedNamespace, "openshift.io/sa.scc.uid-range")
	for _, namespace := range []string{hostedNamespace, b.node} {
		p.giveRange(t, namespace)
	}
	name := p.kubectl(t, "get", "deployment", "cinder-csi-controller", "--namespace="+hostedNamespace, "-o", `jsonpath={.spec.template.spec.volumes[?(@.name=="cloud")].projected.sources[0].secret.name}{.spec.template.spec.volumes[?(@.name=="cloud")].secret.secretName}`)
	p.awaitEvent(t, hostedNamespace, fmt.Sprintf("secret %q not found", name))
	b.kubectl(t, "create", "secret", "generic", name, "--namespace="+hostedNamespace, "--from-file=clouds.yaml=driver-clouds.yaml")
	b.awaitInstalled(t)
	c.makeNamespace(t)
	p.giveRange(t, c.namespace)
	b.class = strings.Fields(p.kubectl(t, "get", "storageclasses", "-o", `jsonpath={.items[?(@.provisioner=="cinder-csi.io")].metadata.name}`))[0]
	b.useVolume(t)
	c.kubectl(t, "delete", "namespace", c.namespace, atMost)
	b.follow(t, "Remove")
	c.kubectl(t, "delete", "namespace", hostedNamespace, atMost)
	before.compare(t, c.takeStock(t))
	fmt.Printf("measured: openshift %-9s %-55s %6.1f s\n", "hosted", "both planes installed, a volume moved and saved, removed", time.Since(began).Seconds())
}

// printed are the commands that `cinder-csi-generator adopt` prints under a heading, in their order. A command may have several lines.
func printed(text, part string) []string {
	_, rest, _ := strings.Cut("\n"+text, "\n"+part+"\n")
	var all []string
	for i, block := range strings.Split(rest, "\n\n") {
		if i > 0 && block != "" && block[0] != ' ' && !strings.ContainsAny(block[:1], "0123456789") {
			break // the next heading
		}
		var command []string
		for line := range strings.Lines(block) {
			if inner, is := strings.CutPrefix(line, "       "); is {
				command = append(command, strings.TrimRight(inner, "\n"))
			}
		}
		if len(command) > 0 {
			all = append(all, strings.Join(command, "\n"))
		}
	}
	return all
}
