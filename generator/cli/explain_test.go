package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestExplainSaysWhereAValueComesFrom(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	got := b.ok(t, "explain", "storageclass/fast", "volumeBindingMode", dir)
	want := "value: WaitForFirstConsumer\ndecision: storageClasses.volumeBindingMode (default)\nreason: the volume is made once its first pod has a node, where that pod can use it\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range [][3]string{{"storageclass/fast", "parameters.type", "fast"}, {"deployment/cinder-csi-controller", "spec.replicas", "2"}} {
		if got := b.ok(t, "explain", c[0], c[1], dir); !strings.HasPrefix(got, "value: "+c[2]+"\n") {
			t.Errorf("%s %s: want %s, got %s", c[0], c[1], c[2], got)
		}
	}
	for object, field := range map[string]string{
		"csidriver/cinder.csi.openstack.org": "metadata.name", "daemonset/cinder-csi-node": "priorityClass",
		"volumesnapshotclass/cinder-csi": "name", "secret/cinder-csi-credentials": "key",
	} {
		b.ok(t, "explain", object, field, dir)
		if _, stderr, code := b.run(t, "explain", object+"x", field, dir); code != Usage || !strings.Contains(stderr, "has no "+object+"x") {
			t.Errorf("%sx: want exit 64, got %d: %s", object, code, stderr)
		}
	}
	for _, args := range [][]string{{"networkpolicy/cinder-csi-controller", "ports"}, {"storageclass/fast", "parameters.colour"}, {"storageclass/none", "parameters"}, {"storageclass/fast", "colour"}, {"pod/x", "y"}} {
		if _, stderr, code := b.run(t, "explain", args[0], args[1], dir); code != Usage {
			t.Errorf("%v: want exit 64, got %d: %s", args, code, stderr)
		}
	}
}

func TestExplainTellsDecisionsFromWhatIsAlwaysSo(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "config.yaml", "spec: {kubernetesVersion: '1.35', images: {driver: {tag: v9}}}")
	for _, format := range formats {
		dir := filepath.Join(b.dir, format)
		b.ok(t, generation("vanilla", format, dir, "--config", config)...)
		always := "it is the chart's, charts/cinder-csi/templates/"
		none := "decision: none\nreason: no decision was made about it: "
		bundle := build(t, dir)
		for _, c := range []struct{ object, field, value, says string }{
			{"csidriver/cinder.csi.openstack.org", "attachRequired", "true", none + always},
			{"csidriver/cinder.csi.openstack.org", "spec.attachRequired", "true", none + always},
			{"CSIDriver/cinder.csi.openstack.org", "nodeAllocatableUpdatePeriodSeconds", "60", "decision: volumeAttachLimit.refreshSeconds (config)\n"},
			{"csidriver/cinder.csi.openstack.org", "metadata.name", "cinder.csi.openstack.org", "decision: driver.name (default)\n"},
			{"configmap/cinder-csi-controller-settings", "CLUSTER_ID", "kubernetes", "decision: clusterID (default)\n"},
			{"configmap/cinder-csi-controller-settings", "data.LEASE_NAMESPACE", "cinder-csi", "decision: namespaces.controller (default)\n"},
			{"configmap/cinder-csi-controller-settings", "LEASE_DURATION", "15s", "decision: leases (default)\n"},
			{"configmap/cinder-csi-controller-config", "cloud.conf", "[Global]\n       use-clouds = true", "decision: cloudConf (inferred)\n"},
			{"configmap/cinder-csi-node-config", "cloud.conf", "[BlockStorage]\n", "decision: volumeAttachLimit (default)\n"},
			{"deployment/cinder-csi-controller", "containers[driver].image", "registry.invalid/cinder-csi/cinder-csi-driver:v9", "decision: images.driver (config)\n"},
			{"deployment/cinder-csi-controller", "containers[0].image", "registry.invalid/cinder-csi/cinder-csi-driver:v9", "decision: images.driver (config)\n"},
			{"deployment/cinder-csi-controller", "containers[attacher].imagePullPolicy", "IfNotPresent", none + always},
			{"serviceaccount/cinder-csi-node", "automountServiceAccountToken", "false", none + always},
			{"storageclass/standard", "provisioner", "cinder.csi.openstack.org", "decision: driver.name (default)\n"},
			{"storageclass/standard", "annotations.helm.sh/resource-policy", "keep", none},
			{"storageclass/standard", "metadata.annotations", "{\"argocd", "decision: defaultClass (inferred)\nreason: \"standard\" is the cloud's default volume type\nfact: defaultVolumeType = standard\nthe rest: no decision"},
		} {
			answers, err := bundle.explain(c.object, c.field)
			if err != nil || len(answers) != 1 {
				t.Errorf("%s: %s %s: want one answer, got %v, %v", format, c.object, c.field, answers, err)
				continue
			}
			var got strings.Builder
			answers[0].print(&got)
			if !strings.HasPrefix(got.String(), "value: "+c.value) || !strings.Contains(got.String(), c.says) {
				t.Errorf("%s: %s %s: want %s and %q, got:\n%s", format, c.object, c.field, c.value, c.says, got.String())
			}
		}
		for _, c := range [][3]string{
			{"configmap/nonsense", "whatever", "has no configmap/nonsense; there are cinder-csi-controller-config,"},
			{"configmap/cinder-csi-controller-settings", "topology", "has no field topology"},
			{"csidriver/cinder.csi.openstack.org", "colour", "has no field colour"},
			{"deployment/cinder-csi-controller", "containers[driver].imag", "imagePullPolicy"},
			{"deployment/cinder-csi-controller", "containers[driver]image", "has no field"},
			{"deployment/cinder-csi-controller", "containers[99].image", "has no field"},
			{"deployment/cinder-csi-controller", "", "has no field"},
			{"deployment", "replicas", "has no deployment"},
		} {
			if answers, err := bundle.explain(c[0], c[1]); err == nil || codeOf(err) != Usage || !strings.Contains(err.Error(), c[2]) {
				t.Errorf("%s: %v: want exit 64, got %v, %v", format, c, answers, err)
			}
		}
	}
}

func TestExplainAnswersForBothPlanesAndWarnsOfEdits(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("hypershift", "helm", dir)...)
	got := b.ok(t, "explain", "serviceaccount/cinder-csi-controller", "namespace", dir)
	for _, want := range []string{
		"object: management: ServiceAccount clusters-example/cinder-csi-controller\nvalue: clusters-example\ndecision: namespaces.controller",
		"\n\nobject: guest: ServiceAccount cinder-csi/cinder-csi-controller\nvalue: cinder-csi\ndecision: namespaces.node",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
	got = b.ok(t, "explain", "deployment/cinder-csi-controller", "volumes[admin-kubeconfig].secret.secretName", dir)
	if want := "value: service-network-admin-kubeconfig\ndecision: hypershift.kubeconfigSecret (default)\nreason: HyperShift makes this Secret in the namespace of each hosted control plane\nthere because of: hypershift.guestAccess (default)\n"; !strings.HasPrefix(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	b.file(t, "out/README.md", "mine")
	if _, stderr, code := b.run(t, "explain", "storageclass/fast", "reclaimPolicy", dir); code != OK || !strings.Contains(stderr, "README.md differs from what generate wrote") {
		t.Errorf("want a warning, got %d: %s", code, stderr)
	}
}

func build(t *testing.T, dir string) *explainer {
	t.Helper()
	opened, tree, _, err := readBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := verify.BundleAt(dir, nil, tree, opened.Plan.Target, opened.Plan.Format)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newExplainer(*opened.Plan, objects)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExplainSaysWhyAVolumeTypeHasNoClass(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir, "--config", b.file(t, "config.yaml", "spec: {storageClasses: {exclude: ['mult*']}}"))...)
	for _, c := range [][2]string{
		{"volumetype/fast", "value: StorageClass fast\ndecision: storageClass.fast (inferred)\n"},
		{"volumetypes/multiattach", "value: no class\ndecision: none\nreason: spec.storageClasses.exclude has the pattern \"mult*\", which matches it\n"},
		{"volumetype/__DEFAULT__", "value: no class\ndecision: none\nreason: Cinder makes this type for itself"},
	} {
		if got := b.ok(t, "explain", c[0], dir); !strings.HasPrefix(got, c[1]) {
			t.Errorf("%s: want %q, got %q", c[0], c[1], got)
		}
	}
	for _, args := range [][]string{{"explain", "volumetype/gone", dir}, {"explain", "volumetype/fast", dir, dir}, {"explain", "sc/fast"}} {
		if _, stderr, code := b.run(t, args...); code != Usage {
			t.Errorf("%v: want exit 64, got %d: %s", args, code, stderr)
		}
	}
}

func TestExplainNamesTheDecisionOfBindingModeReplicasAndLeases(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("standalone", "kustomize", dir)...)
	for _, c := range [][3]string{
		{"sc/fast", "volumeBindingMode", "decision: storageClasses.volumeBindingMode (default)\n"},
		{"sc/fast", "reclaimPolicy", "decision: storageClasses.reclaimPolicy (default)\n"},
		{"sc/fast", "allowVolumeExpansion", "decision: storageClasses.allowVolumeExpansion (default)\n"},
		{"deploy/cinder-csi-controller", "replicas", "value: 2\ndecision: controller.replicas (default)\n"},
		{"cm/cinder-csi-controller-settings", "LEASE_DURATION", "value: 137s\ndecision: leases (default)\n"},
		{"ds/cinder-csi-node", "tolerations", "decision: node.tolerations (default)\n"},
		{"vsc/cinder-csi", "driver", "decision: driver.name (default)\n"},
		{"sa/cinder-csi-node", "namespace", "decision: namespaces.node (default)\n"},
		{"pdb/cinder-csi-controller", "maxUnavailable", "decision: none\nreason: no decision was made about it: it is the chart's, charts/cinder-csi/templates/controllerconfig.yaml\n"},
		{"ns/cinder-csi", "name", "decision: namespaces.controller (default)\n"},
	} {
		if got := b.ok(t, "explain", c[0], c[1], dir); !strings.Contains(got, c[2]) {
			t.Errorf("%s %s: want %q in:\n%s", c[0], c[1], c[2], got)
		}
	}
}

func TestExplainRefusesATransformerThatWouldRenameAClass(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	b.ok(t, "explain", "storageclass/fast", "volumeBindingMode", dir)
	b.file(t, "out/kustomization.yaml", files(t, dir)["kustomization.yaml"]+"namePrefix: my-\n")
	stdout, stderr, code := b.run(t, "explain", "storageclass/fast", "volumeBindingMode", dir)
	if code != Failure || stdout != "" || !strings.Contains(stderr, "namePrefix") {
		t.Errorf("want exit 1 that names the field, got %d: %s%s", code, stdout, stderr)
	}
}

// A person who reads an ID in an event or in a report has no bundle at hand.
func TestACauseAndACheckOfDoctorAreExplainedWithoutABundle(t *testing.T) {
	for id, want := range map[string]string{
		"attach.reserved": "Cinder keeps a reservation of the volume", "cloud.token-refused": "refuses the tokens", "cluster.ports": "host port",
	} {
		b := newBed(t)
		if stdout, stderr, code := b.run(t, "explain", id); code != OK || !strings.Contains(stdout, want) {
			t.Errorf("%s: code %d, %s%s", id, code, stdout, stderr)
		}
	}
}

func TestAReasonOfAnotherIsOneLineOfAnAnswer(t *testing.T) {
	var out bytes.Buffer
	d := v1alpha1.Decision{ID: "a\nb", Source: "c\nd", Reason: "e\nf", Facts: []v1alpha1.NamedFact{{Name: "g\nh", Value: "i\nj"}}}
	answer{value: "x", decisions: []v1alpha1.Decision{d}, there: []v1alpha1.Decision{{ID: "k\nl", Source: "m", Reason: "n\no"}}}.print(&out)
	if got := strings.Count(out.String(), "\n"); got != 6 {
		t.Errorf("want six lines, got %q", out.String())
	}
}
