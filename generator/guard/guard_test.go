package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func inventory(types ...string) v1alpha1.Inventory {
	zones := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "az1", Available: true}}}
	inv := v1alpha1.Inventory{
		Cloud:             v1alpha1.Cloud{AuthURL: "https://keystone.example/v3", Region: "R", ProjectID: "p"},
		Services:          v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known},
		Zones:             v1alpha1.Zones{Compute: zones, Volume: zones},
		VolumeTypes:       v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Known, Value: "standard"},
	}
	for _, name := range types {
		id, now, renamed := strings.Cut(name, "=") // "fast=quick": the type of ID id-fast is called quick now
		if !renamed {
			now = name
		}
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: "id-" + id, Name: now})
	}
	return inv
}

func decide(t *testing.T, inv v1alpha1.Inventory, spec string, target v1alpha1.Target) v1alpha1.Plan {
	t.Helper()
	d, err := v1alpha1.DecodeDistribution("c.yaml", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Decide(inv, d, target, v1alpha1.Helm, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r.Document(nil)
}

// again is decide for a bundle that is there.
func again(t *testing.T, old v1alpha1.Plan, inv v1alpha1.Inventory, spec string, target v1alpha1.Target) plan.Result {
	t.Helper()
	d, err := v1alpha1.DecodeDistribution("c.yaml", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Again(&old, inv, d, target, v1alpha1.Helm, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compare is Compare as the command calls it, old being as plan.yaml holds it.
func compare(t *testing.T, old v1alpha1.Plan, inv v1alpha1.Inventory, spec string, target v1alpha1.Target) []v1alpha1.Change {
	t.Helper()
	r := again(t, old, inv, spec, target)
	next := r.Document(nil)
	return Compare(old, next, Run{Inventory: inv, Failures: r.Failures, OldConfigs: Today(inv, old, next)})
}

// read is a plan as the next run reads it from plan.yaml.
func read(t *testing.T, p v1alpha1.Plan) v1alpha1.Plan {
	t.Helper()
	text, err := v1alpha1.YAML(p)
	if err != nil {
		t.Fatal(err)
	}
	p, err = v1alpha1.DecodePlan("plan.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatIsRefusedAndHowItIsPinned(t *testing.T) {
	other := inventory("standard", "fast")
	other.Cloud.ProjectID = "q"
	simulated := inventory("standard", "fast")
	simulated.Simulated = true
	moved := inventory("standard", "fast")
	moved.Cloud.AuthURL = "https://identity.example/v3"
	zoned := inventory("standard", "fast")
	zoned.Zones.Volume.Value = []v1alpha1.Zone{{Name: "nova"}}
	down := inventory("standard", "fast")
	down.Zones.Volume.Value = []v1alpha1.Zone{{Name: "az1", Available: false}}

	const base = "{metadata: {name: c}}"
	const noSnapshots = "{metadata: {name: c}, spec: {snapshots: {enabled: false}}}"
	cases := []struct {
		name       string
		oldSpec    string
		next       v1alpha1.Inventory
		spec       string
		target     v1alpha1.Target
		wantAccept []string
		wantPin    string // the pins of all refusals in one configuration; "" where there is none
	}{
		{"nothing changed", base, inventory("standard", "fast"), base, v1alpha1.Vanilla, nil, ""},
		{"a type more", base, inventory("standard", "fast", "new"), base, v1alpha1.Vanilla, nil, ""},
		{"Keystone moved", base, moved, base, v1alpha1.Vanilla, nil, ""},
		{"a zone is down for a moment", base, down, base, v1alpha1.Vanilla, nil, ""},
		{"a mutable field", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {mountOptions: [noatime]}}}}}", v1alpha1.Vanilla, nil, ""},
		{"snapshots turned on", noSnapshots, inventory("standard", "fast"), base, v1alpha1.Vanilla, nil, ""},
		{"a type less", base, inventory("standard"), base, v1alpha1.Vanilla, []string{ClassRemoved}, "storageClasses: {extra: [{name: fast, parameters: {type: fast}, reclaimPolicy: Delete}]}"},
		{
			"two types less", base, inventory("new"), base, v1alpha1.Vanilla,
			[]string{ClassRemoved, ClassRemoved},
			"storageClasses: {extra: [{name: fast, parameters: {type: fast}, reclaimPolicy: Delete}, {name: standard, parameters: {type: standard}, reclaimPolicy: Delete}]}",
		},
		{
			"a type renamed", base, inventory("standard", "fast=quick"), base, v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"storageClasses: {extra: [{name: fast, parameters: {type: id-fast}, reclaimPolicy: Delete}]}",
		},
		{
			"a type renamed whose class has a name of its own", "{metadata: {name: c}, spec: {storageClasses: {overrides: {id-fast: {name: gold}}}}}",
			inventory("standard", "fast=quick"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {id-fast: {name: gold}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {extra: [{name: gold, parameters: {type: id-fast}, reclaimPolicy: Delete}]}",
		},
		{
			"a file system more", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"",
		},
		{
			"another file system, by ID", "{metadata: {name: c}, spec: {storageClasses: {overrides: {id-fast: {fsType: xfs}}}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {storageClasses: {overrides: {id-fast: {fsType: ext4, reclaimPolicy: Retain}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable, ClassImmutable},
			"storageClasses: {overrides: {id-fast: {fsType: xfs, reclaimPolicy: Delete}}}",
		},
		{
			"the name of the driver and the classes", base, inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {driver: {name: x.io}, storageClasses: {volumeBindingMode: Immediate}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable, ClassImmutable, ClassImmutable, ClassImmutable, DriverName},
			"driver: {name: cinder.csi.openstack.org}, storageClasses: {overrides: {fast: {volumeBindingMode: WaitForFirstConsumer}, standard: {volumeBindingMode: WaitForFirstConsumer}}}",
		},
		{
			"a file system as a parameter", "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {parameters: {csi.storage.k8s.io/fstype: ext4}}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {parameters: {csi.storage.k8s.io/fstype: xfs}}}}",
		},
		{
			"an extra class that changes", "{metadata: {name: c}, spec: {storageClasses: {extra: [{name: gold, type: fast}]}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {storageClasses: {extra: [{name: other, type: fast}, {name: gold, type: fast, reclaimPolicy: Retain}]}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {extra: [{name: gold, parameters: {type: fast}, reclaimPolicy: Delete}]}",
		},
		{
			"an extra class whose type is renamed", "{metadata: {name: c}, spec: {storageClasses: {exclude: ['*'], extra: [{name: gold, type: id-fast}]}}}", inventory("standard", "fast=quick"),
			"{metadata: {name: c}, spec: {storageClasses: {exclude: ['*'], extra: [{name: gold, type: id-fast}]}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {extra: [{name: gold, parameters: {type: id-fast}, reclaimPolicy: Delete}]}",
		},
		{
			"an extra class whose type is gone", "{metadata: {name: c}, spec: {storageClasses: {exclude: [fast], extra: [{name: gold, type: fast}]}}}", inventory("standard"),
			"{metadata: {name: c}, spec: {storageClasses: {exclude: [fast], extra: [{name: gold, type: fast}]}}}", v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"storageClasses: {extra: [{name: gold, parameters: {type: fast}, reclaimPolicy: Delete}]}",
		},
		{
			"topology turned off with its map of zones", "{metadata: {name: c}, spec: {topology: {mode: enabled, zoneMap: {az1: nova}}}}", zoned, base, v1alpha1.Vanilla,
			[]string{Topology},
			"topology: {mode: enabled, zoneMap: {az1: nova}}",
		},
		{
			"backups turned off", "{metadata: {name: c}, spec: {snapshots: {backup: enabled}}}", inventory("standard", "fast"), "{metadata: {name: c}, spec: {snapshots: {backup: disabled}}}", v1alpha1.Vanilla,
			[]string{Snapshots},
			"snapshots: {backup: enabled}",
		},
		{
			"an attributes class that changes", "{metadata: {name: c}, spec: {kubernetesVersion: '1.34', attributesClasses: {gold: {metadata: {a: b}}}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {kubernetesVersion: '1.34', attributesClasses: {gold: {type: fast, metadata: {a: c, d: e}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"attributesClasses: {gold: {metadata: {a: b}}}",
		},
		{
			"a snapshot class that goes while another becomes the default",
			"{metadata: {name: c}, spec: {snapshots: {classes: {old: {deletionPolicy: Retain, default: true}}}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {snapshots: {classes: {new: {default: true}}}}}", v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"snapshots: {classes: {old: {deletionPolicy: Retain}}}",
		},
		{
			"a snapshot class called backup that changes", "{metadata: {name: c}, spec: {snapshots: {classes: {backup: {parameters: {type: backup}}}}}}", inventory("standard", "fast"),
			"{metadata: {name: c}, spec: {snapshots: {classes: {backup: {deletionPolicy: Retain}}}}}", v1alpha1.Vanilla, nil, "",
		},
		{
			"an attributes class that goes with its version of Kubernetes", "{metadata: {name: c}, spec: {kubernetesVersion: '1.34', attributesClasses: {gold: {metadata: {a: b}}}}}", inventory("standard", "fast"),
			base, v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"attributesClasses: {gold: {metadata: {a: b}}}, kubernetesVersion: '1.34'",
		},
		{
			"another driver name on OpenShift", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {driver: {name: x.y}}}", v1alpha1.Standalone,
			[]string{DriverName, ClassImmutable, ClassImmutable},
			"openshift: {coexistence: sideBySide}",
		},
		{
			"a class renamed by the configuration", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {name: gold}}}}}", v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"storageClasses: {extra: [{name: fast, parameters: {type: fast}, reclaimPolicy: Delete}]}",
		},
		{
			"a type excluded", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {exclude: [fast]}}}", v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"storageClasses: {extra: [{name: fast, parameters: {type: fast}, reclaimPolicy: Delete}]}",
		},
		{
			"a reclaim policy", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {reclaimPolicy: Retain}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {reclaimPolicy: Delete}}}",
		},
		{
			"a binding mode", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {volumeBindingMode: Immediate}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {volumeBindingMode: WaitForFirstConsumer}}}",
		},
		{
			"an extra class with a binding mode", "{metadata: {name: c}, spec: {storageClasses: {extra: [{name: now, type: fast, volumeBindingMode: Immediate, allowVolumeExpansion: false}]}}}",
			inventory("standard", "fast"), base, v1alpha1.Vanilla,
			[]string{ClassRemoved},
			"storageClasses: {extra: [{name: now, allowVolumeExpansion: false, parameters: {type: fast}, reclaimPolicy: Delete, volumeBindingMode: Immediate}]}",
		},
		{
			"a file system", "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}}", inventory("standard", "fast"), base, v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {fsType: xfs}}}",
		},
		{"zones no longer match", base, zoned, base, v1alpha1.Vanilla, []string{Topology}, "topology: {mode: enabled}"},
		{"snapshots turned off", base, inventory("standard", "fast"), noSnapshots, v1alpha1.Vanilla, []string{Snapshots}, "snapshots: {enabled: true}"},
		{"another cluster id", base, inventory("standard", "fast"), "{metadata: {name: d}}", v1alpha1.Vanilla, []string{ClusterID}, "clusterID: c"},
		{"another namespace", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {namespaces: {node: x}}}", v1alpha1.Vanilla, []string{Namespace}, "namespaces: {node: cinder-csi-node}"},
		{
			"another driver name", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {driver: {name: x.y}}}", v1alpha1.Vanilla,
			[]string{DriverName, ClassImmutable, ClassImmutable},
			"driver: {name: cinder.csi.openstack.org}",
		},
		{
			"from sideBySide to adopt", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {openshift: {coexistence: adopt}}}", v1alpha1.Standalone,
			[]string{DriverName, ClassImmutable, ClassImmutable},
			"openshift: {coexistence: sideBySide}",
		},
		{
			"from adopt to sideBySide", "{metadata: {name: c}, spec: {openshift: {coexistence: adopt}}}", inventory("standard", "fast"), base, v1alpha1.Standalone,
			[]string{DriverName, ClassImmutable, ClassImmutable},
			"openshift: {coexistence: adopt}",
		},
		{"another project", base, other, base, v1alpha1.Vanilla, []string{Cloud}, ""},
		{"a simulated cloud", base, simulated, base, v1alpha1.Vanilla, []string{Cloud}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old := read(t, decide(t, inventory("standard", "fast"), c.oldSpec, c.target))
			refusals := Refused(compare(t, old, c.next, c.spec, c.target), nil, false)
			var got []string
			for _, r := range refusals {
				got = append(got, r.Accept)
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.wantAccept))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if left := Refused(refusals, c.wantAccept, false); len(left) > 0 {
				t.Errorf("want nothing left once accepted, got %v", left)
			}
			pins, remove := pinsOf(t, refusals)
			if diff := cmp.Diff(document(t, "spec: {"+c.wantPin+"}"), document(t, string(pins))); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
			if c.wantPin == "" && remove == nil {
				return
			}
			config := pasted(t, c.spec, pins, remove)
			if left := Refused(compare(t, old, c.next, config, c.target), nil, false); len(left) > 0 {
				t.Errorf("generate refuses although the pins are in the configuration: %v\n%s", left, config)
			}
		})
	}
}

// pinsOf are all pins in one document, and the keys to remove before.
func pinsOf(t *testing.T, refusals []v1alpha1.Change) ([]byte, []string) {
	t.Helper()
	pin, remove := Pin(refusals)
	if pin == nil {
		pin = map[string]any{}
	}
	text, err := v1alpha1.YAML(map[string]any{"spec": pin})
	if err != nil {
		t.Fatal(err)
	}
	return text, remove
}

// without is a document without the key at a path, as a person removes it.
func without(v any, path string) any {
	object, isObject := v.(map[string]any)
	for key, below := range object {
		rest, found := strings.CutPrefix(path, key)
		switch list, isList := below.([]any); {
		case !found:
		case rest == "":
			delete(object, key)
		case rest[0] == '.':
			object[key] = without(below, rest[1:])
		case isList && rest[0] == '[':
			var i int
			if _, err := fmt.Sscanf(rest, "[%d]", &i); err == nil && i < len(list) {
				object[key] = slices.Delete(list, i, i+1)
			}
		}
	}
	if !isObject {
		return v
	}
	return object
}

func document(t *testing.T, text string) v1alpha1.Distribution {
	t.Helper()
	d, err := v1alpha1.DecodeDistribution("pin", []byte(text))
	if err != nil {
		t.Fatalf("the pin is no configuration: %v\n%s", err, text)
	}
	return d
}

// pasted is a configuration without the keys to remove, and with the pins in it.
func pasted(t *testing.T, spec string, pins []byte, remove []string) string {
	t.Helper()
	var config, pin any
	if err := errors.Join(yaml.Unmarshal([]byte(spec), &config), yaml.Unmarshal(pins, &pin)); err != nil {
		t.Fatal(err)
	}
	config = plainJSON(config)
	for _, path := range remove {
		before, _ := v1alpha1.YAML(config)
		config = without(config, path)
		if after, _ := v1alpha1.YAML(config); string(before) == string(after) {
			t.Errorf("the configuration has no %s to remove:\n%s", path, before)
		}
	}
	text, err := v1alpha1.YAML(merge(config, plainJSON(pin)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCauses(t *testing.T) {
	const base = "{metadata: {name: c}}"
	two := inventory("standard", "fast")
	twoWithOtherDefault := inventory("standard", "fast")
	twoWithOtherDefault.DefaultVolumeType.Value = "fast"
	withoutDefault := inventory("standard", "fast")
	withoutDefault.DefaultVolumeType.Value = ""
	cases := []struct {
		name, version string
		next          v1alpha1.Inventory
		spec          string
		want          []string
	}{
		{"a type more", "test", inventory("standard", "fast", "new"), base, []string{"cloud storageClass.new"}},
		{"the configuration", "test", two, "{metadata: {name: c}, spec: {topology: {mode: disabled}}}", []string{"config spec.topology.mode", "config topology.enabled"}},
		{"the generator", "older", two, base, []string{"generator generator"}},
		{"a type excluded", "test", two, "{metadata: {name: c}, spec: {storageClasses: {exclude: [fast]}}}", []string{"config spec.storageClasses.exclude", "config storageClass.fast"}},
		{
			"configuration and cloud", "test", twoWithOtherDefault, "{metadata: {name: c}, spec: {driver: {logLevel: 5}}}",
			[]string{"config spec.driver.logLevel", "config driver.logLevel", "cloud defaultClass StorageClass/fast StorageClass/standard"},
		},
		{"no default class", "test", withoutDefault, base, []string{"cloud defaultClass StorageClass/standard", "cloud warnings"}},
	}
	for _, c := range cases {
		old := read(t, decide(t, two, base, v1alpha1.Vanilla))
		old.Generator = c.version
		var got []string
		for _, change := range compare(t, old, c.next, c.spec, v1alpha1.Vanilla) {
			what := change.Decision
			if what == "" {
				what = change.Field
			}
			if change.Decision == plan.IDs.DefaultClass.ID {
				what = strings.Join(append([]string{what}, change.Objects...), " ")
			}
			got = append(got, string(change.Class)+" "+what)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The plan holds the configuration with its defaults. Whether a key was set then decides who caused a change.
func TestAChangedConfigurationIsTheCauseWhereItOnlyNamesTheCluster(t *testing.T) {
	for _, test := range []struct {
		name, from, to string
		target         v1alpha1.Target
	}{
		{"a name", "{}", "{metadata: {name: c}}", v1alpha1.Vanilla},
		{"the name that was assumed", "{}", "{spec: {clusterID: kubernetes}}", v1alpha1.Vanilla},
		{"no name any more", "{metadata: {name: c}}", "{}", v1alpha1.Vanilla},
		{"the infrastructure name of OpenShift", "{metadata: {name: c}}", "{spec: {clusterID: infra}}", v1alpha1.Standalone},
		{"another hosted cluster", "{metadata: {name: a}}", "{metadata: {name: b}}", v1alpha1.HostedControlPlane},
		{"a hosted cluster with all its names", "{metadata: {name: a}}", "{metadata: {name: a}, spec: {namespaces: {controller: clusters-a}, hypershift: {infraID: i, platform: OpenStack}}}", v1alpha1.HostedControlPlane},
		{"a key that has no effect", "{metadata: {name: c}}", "{metadata: {name: c}, spec: {openshift: {coexistence: adopt}}}", v1alpha1.Vanilla},
	} {
		inv := inventory("standard")
		old := read(t, decide(t, inv, test.from, test.target))
		changes := compare(t, old, inv, test.to, test.target)
		if len(changes) == 0 {
			t.Errorf("%s: want changes, got none", test.name)
		}
		for _, c := range changes {
			if c.Class != v1alpha1.ConfigChange {
				t.Errorf("%s: want the configuration as cause, got %s", test.name, c.Message)
			}
		}
	}
}

// A cloud that answers otherwise stays the cause of the warnings that follow from its answer.
func TestACloudIsTheCauseOfAWarningThatItsAnswerGives(t *testing.T) {
	inv := inventory("standard")
	denied := inventory("standard")
	denied.Services = v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Denied, Reason: "403"}
	const warning = "the versions of Cinder are not known"
	for _, test := range []struct{ from, to v1alpha1.Inventory }{{inv, denied}, {denied, inv}} {
		old := read(t, decide(t, test.from, "{metadata: {name: c}}", v1alpha1.Vanilla))
		found := false
		for _, c := range compare(t, old, test.to, "{metadata: {name: c}, spec: {driver: {logLevel: 5}}}", v1alpha1.Vanilla) {
			if c.Field == "warnings" && strings.Contains(c.Message, warning) {
				found = c.Class == v1alpha1.CloudChange
			}
		}
		if !found {
			t.Errorf("want the cloud as cause of the warning %q, got another", warning)
		}
	}
}

func TestAnotherFormatIsNamedAsThatAndWantsForce(t *testing.T) {
	old := read(t, decide(t, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	old.Format = v1alpha1.Kustomize
	changes := compare(t, old, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Vanilla)
	if len(changes) != 1 || changes[0].Message != "config: the directory holds a bundle in format kustomize, and this run writes helm" {
		t.Errorf("want one line that names the format, got %v", changes)
	}
	if len(Refused(changes, nil, false)) != 1 || len(Refused(changes, nil, true)) != 0 {
		t.Errorf("want it refused without --force only, got %v", changes)
	}
}

func TestAnotherTargetIsNamedAsThatAndWantsForce(t *testing.T) {
	old := read(t, decide(t, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Standalone))
	changes := compare(t, old, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Vanilla)
	if len(changes) == 0 || changes[0].Message != "config: the directory holds a bundle for target standalone, and this run is for vanilla" {
		t.Fatalf("want a line that names the target first, got %v", changes)
	}
	for _, c := range changes {
		if c.Accept == "" && !c.Force {
			t.Errorf("want only what generate refuses beside the target, got %s", c.Message)
		}
	}
}

func TestWhatKubernetesCannotChangeIsRefusedForEveryKindOfObject(t *testing.T) {
	plans := func(id string, was, is any) []v1alpha1.Change {
		old, next := v1alpha1.Plan{}, v1alpha1.Plan{}
		if was != nil {
			old.Decisions = []v1alpha1.Decision{{ID: id, Value: was}}
		}
		if is != nil {
			next.Decisions = []v1alpha1.Decision{{ID: id, Value: is}}
		}
		return Compare(old, next, Run{})
	}
	type v = map[string]any
	cases := []struct {
		name, id string
		was, is  any
		want     string
	}{
		{"driver name of a VolumeAttributesClass", "attributesClass.gold", v{"driverName": "a"}, v{"driverName": "b"}, ClassImmutable},
		{"parameters of a VolumeAttributesClass", "attributesClass.gold", v{"parameters": v{"type": "a"}}, v{"parameters": v{"type": "b"}}, ClassImmutable},
		{"a VolumeAttributesClass removed", "attributesClass.gold", v{"parameters": v{"type": "a"}}, nil, ClassRemoved},
		{"attachRequired of the CSIDriver", "csiDriver", v{"attachRequired": true}, v{"attachRequired": false}, ClassImmutable},
		{"lifecycle modes of the CSIDriver", "csiDriver", v{"volumeLifecycleModes": []any{"Persistent"}}, v{"volumeLifecycleModes": []any{"Persistent", "Ephemeral"}}, ClassImmutable},
		{"a type that a VolumeAttributesClass does not ask for", "attributesClass.gold", v{"parameters": v{"qos": "a"}, "volumeType": v{"id": "x", "name": "y"}}, v{"parameters": v{"qos": "a"}}, ""},
		{"mount options of a StorageClass", "storageClass.gold", v{"mountOptions": []any{"noatime"}}, v{}, ""},
	}
	for _, c := range cases {
		changes := plans(c.id, c.was, c.is)
		if len(changes) != 1 || changes[0].Accept != c.want {
			t.Errorf("%s: want one change that wants %q, got %+v", c.name, c.want, changes)
		}
	}
}

func TestARefusalNamesWhatChanges(t *testing.T) {
	old := read(t, decide(t, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	refusals := Refused(compare(t, old, inventory("standard"), "{metadata: {name: d}}", v1alpha1.Vanilla), nil, false)
	if len(refusals) != 1 || !strings.Contains(refusals[0].Message, "from c to d") {
		t.Errorf("want the old and the new id, got %v", refusals)
	}
}
