package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func TestExplainSaysWhereAValueComesFrom(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	got := b.ok(t, "explain", "storageclass/fast", "volumeBindingMode", dir)
	want := "value: WaitForFirstConsumer\ndecision: storageClass.fast (inferred)\nreason: the cloud offers volume type \"fast\"\nfact: volumeTypes has \"fast\"\n"
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
		always := "it is the base's or a component's, in manifests/"
		if format == "helm" {
			always = "it is the chart's"
		}
		none := "decision: none\nreason: no decision was made about it: "
		bundle := build(t, dir)
		for _, c := range []struct{ object, field, value, says string }{
			{"csidriver/cinder.csi.openstack.org", "attachRequired", "true", none + always},
			{"csidriver/cinder.csi.openstack.org", "spec.attachRequired", "true", none + always},
			{"CSIDriver/cinder.csi.openstack.org", "nodeAllocatableUpdatePeriodSeconds", "60", "decision: volumeAttachLimit.refreshSeconds (config)\n"},
			{"csidriver/cinder.csi.openstack.org", "metadata.name", "cinder.csi.openstack.org", "decision: driver.name (default)\n"},
			{"configmap/cinder-csi-controller-settings", "CLUSTER_ID", "kubernetes", "decision: clusterID (default)\n"},
			{"configmap/cinder-csi-controller-settings", "data.LEASE_NAMESPACE", "cinder-csi", "decision: namespaces.controller (default)\n"},
			{"configmap/cinder-csi-controller-settings", "LEASE_DURATION", "15s", none + always},
			{"configmap/cinder-csi-controller-config", "cloud.conf", "[Global]\nuse-clouds = true", "decision: cloudConf (inferred)\n"},
			{"configmap/cinder-csi-node-config", "cloud.conf", "[BlockStorage]\n", "decision: volumeAttachLimit (default)\n"},
			{"deployment/cinder-csi-controller", "containers[driver].image", "ghcr.io/cinder-csi/cinder-csi-driver:v9", "decision: controller (config)\n"},
			{"deployment/cinder-csi-controller", "containers[0].image", "ghcr.io/cinder-csi/cinder-csi-driver:v9", "decision: controller (config)\n"},
			{"deployment/cinder-csi-controller", "containers[attacher].imagePullPolicy", "IfNotPresent", none + always},
			{"serviceaccount/cinder-csi-node", "automountServiceAccountToken", "false", none + always},
			{"storageclass/standard", "provisioner", "cinder.csi.openstack.org", "decision: driver.name (default)\n"},
			{"storageclass/standard", "annotations.helm.sh/resource-policy", "keep", none},
			{"storageclass/standard", "metadata.annotations", "{\"argocd", "decision: defaultClass (inferred)\nreason: \"standard\" is the cloud's default volume type\nfact: defaultVolumeType = standard\nthe rest: no decision"},
		} {
			answers, err := explain(bundle.plan, bundle.objects, c.object, c.field)
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
			if answers, err := explain(bundle.plan, bundle.objects, c[0], c[1]); err == nil || codeOf(err) != Usage || !strings.Contains(err.Error(), c[2]) {
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
	got = b.ok(t, "explain", "deployment/cinder-csi-controller", "volumes[hosted-kubeconfig].secret.secretName", dir)
	if want := "value: service-network-admin-kubeconfig\ndecision: none\nreason: spec.hypershift.kubeconfigSecret of the configuration, or its default\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	b.file(t, "out/README.md", "mine")
	if _, stderr, code := b.run(t, "explain", "storageclass/fast", "reclaimPolicy", dir); code != OK || !strings.Contains(stderr, "README.md is not as it was generated") {
		t.Errorf("want a warning, got %d: %s", code, stderr)
	}
}

// certificate is some CA's, as an indented block of YAML.
func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return "|\n      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

// explained is a bundle with its plan.
type explained struct {
	plan    v1alpha1.Plan
	objects []verify.Object
}

func build(t *testing.T, dir string) explained {
	t.Helper()
	opened, tree, _, err := readBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := verify.BundleAt(dir, "", tree, opened.Plan.Target, opened.Plan.Format)
	if err != nil {
		t.Fatal(err)
	}
	return explained{*opened.Plan, objects}
}

// counterpart is the object of another bundle that has the same part; what it is called may have been decided.
func (e explained) counterpart(o verify.Object) (verify.Object, bool) {
	i := slices.IndexFunc(e.objects, func(other verify.Object) bool {
		return other.Plane == o.Plane && other.Kind() == o.Kind() && (other.Name() == o.Name() || o.Kind() == "CSIDriver")
	})
	if i < 0 {
		return verify.Object{}, false
	}
	return e.objects[i], true
}

// scalars are the decisions whose value is in the text of every field that follows from them alone.
var scalars = []string{
	plan.IDDriverName, plan.IDTopologyKey, plan.IDLogLevel, plan.IDControllerNamespace, plan.IDNodeNamespace, plan.IDClusterID, plan.IDTopology, plan.IDCloudConf,
}

// TestExplainGivesEveryFieldItsDecision builds bundles that have little in common and asks about every field of every object: a
// value that another configuration changes was decided, and is in the decision where that is one value.
func TestExplainGivesEveryFieldItsDecision(t *testing.T) {
	b := newBed(t)
	ca := certificate(t)
	configs := map[string]string{
		"default": "{}",
		"much": `spec:
  kubernetesVersion: "1.34"
  namespaces: {controller: storage, node: storage-node}
  clusterID: prod
  driver: {name: cinder.example.org, logLevel: 6}
  credentials:
    secretName: cloud
    key: other.yaml
    cloud: prod
    caBundle: ` + ca + `  topology: {mode: enabled, zoneMap: {az1: az2}}
  volumeAttachLimit: 20
  networkPolicy: {enabled: true, openstackCIDRs: [192.0.2.0/24]}
  hypershift: {kubeconfigSecret: another}
  storageClasses:
    default: fast
    overrides: {standard: {reclaimPolicy: Retain, fsType: xfs, mountOptions: [noatime], annotations: {example.org/owner: us}, parameters: {availability: az2}}}
    extra: [{type: fast, name: twin}]
  images: {driver: {registry: "registry.example:5000", tag: v9}}
  planes:
    controller:
      images: {attacher: {repository: mirror/attacher}}
      proxy: {http: "http://proxy.example:3128", https: "http://proxy.example:3128", noProxy: .svc}
      nodeSelector: {role: storage}
      tolerations: [{key: storage, operator: Equal, value: "yes", effect: NoExecute, tolerationSeconds: 15}]
      podLabels: {team: storage}
      imagePullSecrets: [pull-a]
      runAsUser: 1000680000
      replicas: 3
      resources: {driver: {requests: {cpu: 100m}, limits: {memory: 1Gi}}, snapshotter: {limits: {memory: 500Mi}}}
    node:
      proxy: {noProxy: 169.254.169.254}
      nodeSelector: {storage: "true"}
      tolerations: []
      podLabels: {team: storage}
      imagePullSecrets: [pull-c]
      resources: {registrar: {requests: {memory: 32Mi}}}
`,
		"little": `spec:
  kubernetesVersion: "1.35"
  namespaces: {controller: kube-system, node: kube-system}
  openshift: {coexistence: adopt}
  hypershift: {platform: None}
  topology: {mode: disabled}
  snapshots: {enabled: false}
  networkPolicy: {enabled: true}
  storageClasses: {default: none, namePrefix: os-}
`,
	}
	asked := 0
	for _, target := range targets {
		bundles := map[string]explained{}
		for name, text := range configs {
			dir := filepath.Join(b.dir, target+"-"+name)
			b.ok(t, generation(target, "helm", dir, "--config", b.file(t, target+"-"+name+".yaml", text))...)
			bundles[name] = build(t, dir)
		}
		for name, bundle := range bundles {
			for other, against := range bundles {
				for _, o := range bundle.objects {
					asked += differences(t, fmt.Sprintf("%s, %s and %s: %s", target, name, other, o), bundle, against, o)
				}
			}
		}
	}
	t.Logf("asked about %d fields", asked)
}

// differences asks about every field of an object, and about those in which it differs from its counterpart; how many it asked about.
func differences(t *testing.T, what string, bundle, against explained, o verify.Object) int {
	t.Helper()
	twin, there := against.counterpart(o)
	all := leaves(o.Fields, nil)
	for _, leaf := range all {
		value, at, found := find(o.Fields, leaf.String())
		if !found || !slices.Equal(at, leaf) {
			t.Errorf("%s: %s leads to %s", what, leaf, at)
			continue
		}
		a, err := answerFor(bundle.plan, o, value, leaf)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.decisions) == 1 && slices.Contains(scalars, a.decisions[0].ID) && !strings.Contains(a.value, fmt.Sprint(a.decisions[0].Value)) &&
			!leaf.within("metadata labels") && !leaf.within("metadata annotations") {
			t.Errorf("%s: %s is %s, which is not decision %s = %v", what, leaf, a.value, a.decisions[0].ID, a.decisions[0].Value)
		}
		decided := len(a.decisions) > 0 || strings.HasPrefix(a.rest, "spec.")
		switch otherwise, same := value, false; {
		case !there:
			if leaf.String() == "metadata.name" && !decided {
				t.Errorf("%s: only one has it, and nobody decided so", what)
			}
		case leaf.within("spec template spec containers * image"), leaf.within("spec template spec containers * resources"):
			// Decided where it is configured, and the base's where not: other tests hold both.
		default:
			otherwise, at, same = find(twin.Fields, leaf.String())
			if (!same || !slices.Equal(at, leaf) || !reflect.DeepEqual(value, otherwise)) && !decided {
				t.Errorf("%s: %s is %v and %v, and nobody decided so", what, leaf, value, otherwise)
			}
		}
	}
	return len(all)
}

func FuzzAFoundFieldIsFoundAgain(f *testing.F) {
	object := map[string]any{
		"metadata": map[string]any{"name": "x", "annotations": map[string]any{"a.b": "1", "a": map[string]any{"b": "2", "c": "3"}}},
		"spec":     map[string]any{"list": []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}, map[string]any{"name": "two"}, "three"}},
	}
	for _, path := range []string{"name", "annotations.a.b", "annotations.a.c", "list[one].name", "list[0]", "list[two]", "list[3]", "list[", "..", "[]"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		value, at, found := find(object, path)
		if !found {
			_ = fieldsNear(object, path)
			return
		}
		again, same, found := find(object, at.String())
		if !found || !slices.Equal(at, same) || !reflect.DeepEqual(value, again) {
			t.Errorf("%q is %v = %v, which is %v = %v", path, at, value, same, again)
		}
	})
}
