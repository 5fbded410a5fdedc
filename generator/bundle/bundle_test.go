package bundle_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// result is a plan of a small cloud.
func result(t testing.TB, target v1alpha1.Target, format v1alpha1.Format, spec v1alpha1.Spec, types ...v1alpha1.VolumeType) plan.Result {
	t.Helper()
	if types == nil {
		types = []v1alpha1.VolumeType{{ID: "1", Name: "standard"}}
	}
	zones := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "az1", Available: true}}}
	inventory := v1alpha1.Inventory{
		Cloud: v1alpha1.Cloud{AuthURL: "https://keystone.example:5000/v3", Region: "RegionOne", ProjectID: "f00d"},
		Services: v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known, Value: map[string]v1alpha1.Service{
			"block-storage": {Present: true, MaxMicroversion: "3.70", Port: 8776},
		}},
		Zones:             v1alpha1.Zones{Compute: zones, Volume: zones},
		VolumeTypes:       v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known, Value: types},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Known, Value: types[0].Name},
	}
	r, err := plan.Decide(inventory, v1alpha1.Distribution{Metadata: v1alpha1.Metadata{Name: "prod"}, Spec: spec}, target, format, "v0.0.0-test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t testing.TB, r plan.Result) bundle.Tree {
	t.Helper()
	tree, err := bundle.Render(r, verify.Chart, bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestFilesAreWhereTheContractPutsThem(t *testing.T) {
	for _, c := range []struct {
		target v1alpha1.Target
		format v1alpha1.Format
		want   []string
	}{
		{v1alpha1.Vanilla, v1alpha1.Helm, []string{"README.md", "namespace.yaml", "values.yaml"}},
		{v1alpha1.Standalone, v1alpha1.Helm, []string{"README.md", "namespace.yaml", "values.yaml"}},
		{v1alpha1.HostedControlPlane, v1alpha1.Helm, []string{"README.md", "guest/namespace.yaml", "guest/values.yaml", "management/values.yaml"}},
	} {
		got := slices.Sorted(maps.Keys(render(t, result(t, c.target, c.format, v1alpha1.Spec{}))))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s:\n%s", c.target, c.format, diff)
		}
	}
	controller := "base/controller.yaml base/controllerconfig.yaml base/kustomization.yaml"
	node := "base/csidriver.yaml base/kustomization.yaml base/node.yaml base/nodeconfig.yaml base/rbac.yaml base/snapshotclasses.yaml kustomization.yaml namespace.yaml storageclasses.yaml values.yaml"
	patches := "kustomization.yaml patches/configmap-cinder-csi-controller-config.yaml patches/configmap-cinder-csi-controller-settings.yaml patches/deployment-cinder-csi-controller.yaml values.yaml"
	below := func(dir, files string) []string {
		all := strings.Fields(files)
		for i := range all {
			all[i] = path.Join(dir, all[i])
		}
		return all
	}
	for target, want := range map[v1alpha1.Target][]string{
		v1alpha1.Vanilla:            below("", controller+" "+node+" "+patches),
		v1alpha1.Standalone:         below("", controller+" "+node+" "+patches+" credentialsrequest.yaml"),
		v1alpha1.HostedControlPlane: slices.Concat(below("guest", node), below("management", controller+" "+patches)),
	} {
		got := slices.Sorted(maps.Keys(render(t, result(t, target, v1alpha1.Kustomize, v1alpha1.Spec{}))))
		if diff := cmp.Diff(slices.Compact(slices.Sorted(slices.Values(append(want, "README.md")))), got); diff != "" {
			t.Errorf("%s kustomize:\n%s", target, diff)
		}
	}
}

func TestTheSameDecisionsGiveTheSameBytes(t *testing.T) {
	testenv.NotShort(t)
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			r := result(t, target, format, v1alpha1.Spec{})
			want := render(t, r)
			for range 5 {
				if diff := cmp.Diff(want, render(t, r)); diff != "" {
					t.Fatalf("%s %s:\n%s", target, format, diff)
				}
			}
		}
	}
}

func TestABundleOfASimulatedCloudSaysSo(t *testing.T) {
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		r := result(t, v1alpha1.Vanilla, format, v1alpha1.Spec{})
		real := render(t, r)
		r.Simulated = true
		simulated := render(t, r)
		for _, file := range []string{"README.md", map[v1alpha1.Format]string{v1alpha1.Kustomize: "namespace.yaml", v1alpha1.Helm: "namespace.yaml"}[format], map[v1alpha1.Format]string{v1alpha1.Kustomize: "kustomization.yaml", v1alpha1.Helm: "values.yaml"}[format]} {
			if !bytes.Contains(simulated[file], []byte("simulated cloud")) {
				t.Errorf("%s: %s does not say that it is of a simulated cloud", format, file)
			}
			if bytes.Contains(real[file], []byte("imulated")) {
				t.Errorf("%s: %s of a real cloud speaks of simulation", format, file)
			}
		}
	}
}

func TestWhatIsNotEmittedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Result)
		want   string
	}{
		"format":        {func(r *plan.Result) { r.Format = "jsonnet" }, "format"},
		"target":        {func(r *plan.Result) { r.Target = "nomad" }, "target"},
		"no namespaces": {func(r *plan.Result) { r.NodeNamespace.Value = "" }, "namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := result(t, v1alpha1.Vanilla, v1alpha1.Kustomize, v1alpha1.Spec{})
			c.change(&r)
			if _, err := bundle.Render(r, verify.Chart, bundle.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error about %s, got %v", c.want, err)
			}
		})
	}
}

func TestTheNodesCloudConfHasNoGlobalSection(t *testing.T) {
	r := result(t, v1alpha1.Vanilla, v1alpha1.Kustomize, v1alpha1.Spec{VolumeAttachLimit: "20"})
	conf := string(render(t, r)["patches/configmap-cinder-csi-node-config.yaml"])
	if !strings.Contains(conf, "node-volume-attach-limit = 20") || strings.Contains(conf, "[Global]") || strings.Contains(conf, "clouds.yaml") {
		t.Errorf("want the attach limit, and nothing about clouds:\n%s", conf)
	}
}

// The decided text is passed on as it is. What this package would not understand in it is the driver's to refuse.
func TestTheControllersCloudConfIsTheDecidedTextWithTheZonesBelow(t *testing.T) {
	r := result(t, v1alpha1.Vanilla, v1alpha1.Helm, v1alpha1.Spec{})
	r.CloudConf.Value = "; a comment\n" + r.CloudConf.Value
	r.ZoneMap.Value = map[string]string{"rack 1": "ceph"}
	var values struct{ CloudConf struct{ Controller string } }
	if err := yaml.Unmarshal(render(t, r)["values.yaml"], &values); err != nil {
		t.Fatal(err)
	}
	want := r.CloudConf.Value + "\n[Zone \"rack 1\"]\nvolume-zone = ceph\n"
	if diff := cmp.Diff(want, values.CloudConf.Controller); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheZoneMapReachesTheDriversConfiguration(t *testing.T) {
	spec := v1alpha1.Spec{Topology: v1alpha1.Topology{Mode: v1alpha1.Enabled, ZoneMap: map[string]string{"rack 1": "ceph#1", "rack 2": "ceph#1"}}}
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		file := "values.yaml"
		if target == v1alpha1.HostedControlPlane {
			file = "management/values.yaml"
		}
		var values struct{ CloudConf struct{ Controller string } }
		if err := yaml.Unmarshal(render(t, result(t, target, v1alpha1.Helm, spec))[file], &values); err != nil {
			t.Fatal(err)
		}
		f, err := cloudconf.Parse([]byte(values.CloudConf.Controller))
		if err != nil {
			t.Fatal(err)
		}
		settings, complaints, err := config.ParseSettings(f)
		if err != nil || len(complaints) > 0 {
			t.Fatal(err, complaints)
		}
		if diff := cmp.Diff(contract.ZoneMap{"rack 1": "ceph#1", "rack 2": "ceph#1"}, settings.ZoneMap); diff != "" {
			t.Errorf("%s: zones (-want +got):\n%s", target, diff)
		}
	}
}

func TestTheReadmeSaysWhatAPersonNeeds(t *testing.T) {
	r := result(t, v1alpha1.HostedControlPlane, v1alpha1.Helm, v1alpha1.Spec{
		Credentials: v1alpha1.Credentials{SecretName: "cloud"},
	}, v1alpha1.VolumeType{ID: "1", Name: "a|b"})
	r.Credentials.Value.Key = "it's.yaml" // no configuration may have it, but a shell must not trip over it
	readme := string(render(t, r)["README.md"])
	for _, want := range []string{
		"https://keystone.example:5000/v3",
		`kubectl create secret generic cloud --namespace clusters-prod --from-file='it'\''s.yaml'=driver-clouds.yaml`,
		"`service-network-admin-kubeconfig`", "`pull-secret`", "snapshot-controller", `a\|b`,
		"DIR=.\nCHART=/path/to/checkout/charts/cinder-csi\n", "set it to your path", "helm upgrade --install cinder-csi $CHART --namespace cinder-csi -f $DIR/guest/values.yaml",
		"## Remove", "helm uninstall cinder-csi --namespace clusters-prod\n", "kubectl delete csidriver cinder-csi.io\n", "kubectl delete -f $DIR/guest/namespace.yaml\n",
		"**prod**. Taken from `metadata.name`; it marks", "**off**. `spec.networkPolicy.enabled` is false.\n",
		"- `spec.namespaces.controller` is not set: clusters-prod is assumed to be the hosted control plane's namespace.\n",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("want %q in:\n%s", want, readme)
		}
	}
	if guest, management := strings.Index(readme, "$DIR/guest/values.yaml"), strings.Index(readme, "$DIR/management/values.yaml"); guest > management {
		t.Errorf("the guest's rights must be applied before what uses them")
	}
}

// The clouds.yaml of a person has a password, and the entries of other clouds.
func TestTheReadmeHasACredentialMadeForTheDriver(t *testing.T) {
	r := result(t, v1alpha1.Vanilla, v1alpha1.Kustomize, v1alpha1.Spec{})
	r.Cloud.Region = "no: #1" // text of others
	readme := string(render(t, r)["README.md"])
	for _, want := range []string{
		"    openstack --os-cloud mycloud application credential create cinder-csi --role member --access-rules rules.json -f yaml -c id -c secret\n",
		"    clouds:\n      openstack:\n        auth_type: v3applicationcredential\n        auth:\n          auth_url: https://keystone.example:5000/v3\n",
		"        region_name: \"no: #1\"\n",
		"--from-file=clouds.yaml=driver-clouds.yaml\n",
		"generate --check --output-dir $DIR --os-cloud mycloud\n",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("want %q in:\n%s", want, readme)
		}
	}
	if strings.Contains(readme, "yaml=clouds.yaml") || strings.Contains(readme, "--os-cloud openstack") {
		t.Errorf("the README asks for the clouds.yaml of a person:\n%s", readme)
	}
}

func TestTheReadmeSaysFirstThatTheImageOfTheDriverIsTheUsersToBuild(t *testing.T) {
	for tag, want := range map[string]v1alpha1.Image{"default": {}, "own": {Registry: "registry.example"}} {
		r := result(t, v1alpha1.Vanilla, v1alpha1.Helm, v1alpha1.Spec{Images: v1alpha1.Images{Driver: want}})
		readme := string(render(t, r)["README.md"])
		said, decided := strings.Index(readme, "no registry has this image by default: build or mirror it"), strings.Index(readme, "## What was decided")
		if tag == "default" && (said < 0 || said > decided) || tag == "own" && said >= 0 {
			t.Errorf("%s: said at %d, decisions at %d:\n%s", tag, said, decided, readme)
		}
	}
}

func TestTheReadmeEndsOpenShiftsDriverOnlyWhereItsNameIsTaken(t *testing.T) {
	for coexistence, want := range map[string]bool{v1alpha1.Adopt: true, v1alpha1.SideBySide: false} {
		r := result(t, v1alpha1.Standalone, v1alpha1.Helm, v1alpha1.Spec{OpenShift: v1alpha1.OpenShift{Coexistence: coexistence}})
		readme := string(render(t, r)["README.md"])
		if got := strings.Contains(readme, "cinder-csi-generator adopt $DIR"); got != want {
			t.Errorf("%s: want the way of adopt: %t, got %t:\n%s", coexistence, want, got, readme)
		}
	}
}

func TestTheReadmeCountsClasses(t *testing.T) {
	r := result(t, v1alpha1.Vanilla, v1alpha1.Helm, v1alpha1.Spec{})
	one := r.StorageClasses[0]
	for _, c := range []struct {
		n    int
		want string
	}{{0, "\nNo StorageClass is made.\n"}, {1, "\n1 StorageClass:\n\n|"}, {2, "\n2 StorageClasses:\n\n|"}, {51, "\n51 StorageClasses:\n\nmore"}} {
		r.StorageClasses = slices.Repeat([]plan.Decision[plan.StorageClass]{one}, c.n)
		if readme := string(render(t, r)["README.md"]); !strings.Contains(readme, c.want) {
			t.Errorf("%d: want %q in:\n%s", c.n, c.want, readme)
		}
	}
}

func TestOpenShiftsNamespacesTakePodsOnEveryNodeAndOnManagementCPUs(t *testing.T) {
	for target, want := range map[v1alpha1.Target]int{v1alpha1.Vanilla: 0, v1alpha1.Standalone: 2} {
		got := string(render(t, result(t, target, v1alpha1.Helm, v1alpha1.Spec{}))["namespace.yaml"])
		for _, annotation := range []string{"workload.openshift.io/allowed: management\n", `openshift.io/node-selector: ""`} {
			if n := strings.Count(got, annotation); n != want {
				t.Errorf("%s: want %s %d times, got %d:\n%s", target, annotation, want, n, got)
			}
		}
	}
}

func TestNamespacesOfTheClusterAreNotLabelled(t *testing.T) {
	r := result(t, v1alpha1.Vanilla, v1alpha1.Kustomize, v1alpha1.Spec{Namespaces: v1alpha1.Namespaces{Controller: "kube-system", Node: "cinder-csi-node"}})
	tree := render(t, r)
	if got := string(tree["namespace.yaml"]); strings.Contains(got, "kube-system") || !strings.Contains(got, "name: cinder-csi-node") {
		t.Errorf("want the one namespace that is ours:\n%s", got)
	}
	if !strings.Contains(string(tree["README.md"]), "- Namespace `kube-system`") {
		t.Error("the README does not say that namespace kube-system must be there")
	}
}

func BenchmarkRenderTwoThousandTypes(b *testing.B) {
	var types []v1alpha1.VolumeType
	for i := range 2000 {
		types = append(types, v1alpha1.VolumeType{ID: fmt.Sprint(i), Name: fmt.Sprintf("type-%04d", i)})
	}
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		r := result(b, v1alpha1.Vanilla, format, v1alpha1.Spec{}, types...)
		b.Run(string(format), func(b *testing.B) {
			for b.Loop() {
				render(b, r)
			}
		})
	}
}

// A value that equals the default of the chart may be left out, but not this one: values of another version would then be accepted.
func TestValuesAlwaysNameTheChartVersionSoThatAnotherVersionRefusesThem(t *testing.T) {
	chart := testfile.Read(t, "../../charts/cinder-csi/Chart.yaml")
	_, version, _ := bytes.Cut(chart, []byte("\nversion: "))
	version = version[:bytes.IndexByte(version, '\n')+1]
	for target, files := range map[v1alpha1.Target][]string{
		v1alpha1.Vanilla: {"values.yaml"}, v1alpha1.Standalone: {"values.yaml"}, v1alpha1.HostedControlPlane: {"management/values.yaml", "guest/values.yaml"},
	} {
		tree := render(t, result(t, target, v1alpha1.Helm, v1alpha1.Spec{}))
		for _, file := range files {
			if !bytes.Contains(tree[file], append([]byte("\nchartVersion: "), version...)) {
				t.Errorf("%s: %s has no chartVersion:\n%s", target, file, tree[file])
			}
		}
	}
}
