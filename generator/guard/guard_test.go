package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: "id-" + name, Name: name})
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
	cases := []struct {
		name       string
		oldSpec    string
		next       v1alpha1.Inventory
		spec       string
		target     v1alpha1.Target
		wantAccept []string
		wantPin    string // the pinned configuration that makes the refusal go away; "" where there is none
	}{
		{"nothing changed", base, inventory("standard", "fast"), base, v1alpha1.Vanilla, nil, ""},
		{"a type more", base, inventory("standard", "fast", "new"), base, v1alpha1.Vanilla, nil, ""},
		{"Keystone moved", base, moved, base, v1alpha1.Vanilla, nil, ""},
		{"a zone is down for a moment", base, down, base, v1alpha1.Vanilla, nil, ""},
		{"a mutable field", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {mountOptions: [noatime]}}}}}", v1alpha1.Vanilla, nil, ""},
		{"a type less", base, inventory("standard"), base, v1alpha1.Vanilla, []string{ClassRemoved}, "storageClasses: {extra: [{name: fast, parameters: {type: fast}, reclaimPolicy: Delete}]}"},
		{
			"a reclaim policy", base, inventory("standard", "fast"), "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {reclaimPolicy: Retain}}}}}", v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {reclaimPolicy: Delete}}}",
		},
		{
			"a file system", "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}}", inventory("standard", "fast"), base, v1alpha1.Vanilla,
			[]string{ClassImmutable},
			"storageClasses: {overrides: {fast: {reclaimPolicy: Delete, parameters: {csi.storage.k8s.io/fstype: xfs}}}}",
		},
		{"zones no longer match", base, zoned, base, v1alpha1.Vanilla, []string{Topology}, "topology: {mode: enabled}"},
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
			refusals := Compare(old, decide(t, c.next, c.spec, c.target))
			var got []string
			for _, r := range refusals {
				got = append(got, r.Accept)
			}
			if diff := cmp.Diff(c.wantAccept, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if left := Accepted(refusals, c.wantAccept); len(left) > 0 {
				t.Errorf("want nothing left once accepted, got %v", left)
			}
			if c.wantPin == "" {
				return
			}
			pin, err := v1alpha1.YAML(map[string]any{"spec": refusals[0].Pin})
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := v1alpha1.DecodeDistribution("want", []byte("spec: {"+c.wantPin+"}"))
			if err != nil {
				t.Fatal(err)
			}
			pinned, err := v1alpha1.DecodeDistribution("pin", pin)
			if err != nil {
				t.Fatalf("the pin is no configuration: %v\n%s", err, pin)
			}
			if diff := cmp.Diff(wanted, pinned); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPinPastedIntoTheConfigurationMakesTheRefusalGoAway(t *testing.T) {
	old := read(t, decide(t, inventory("standard", "fast"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	gone := inventory("standard")
	refusals := Compare(old, decide(t, gone, "{metadata: {name: c}}", v1alpha1.Vanilla))
	if len(refusals) != 1 {
		t.Fatalf("want one refusal, got %v", refusals)
	}
	text, err := v1alpha1.YAML(map[string]any{"metadata": map[string]any{"name": "c"}, "spec": refusals[0].Pin})
	if err != nil {
		t.Fatal(err)
	}
	if again := Compare(old, decide(t, gone, string(text), v1alpha1.Vanilla)); len(again) > 0 {
		t.Errorf("want none with the pin, got %v\n%s", again, text)
	}
}

func TestCauses(t *testing.T) {
	const base = "{metadata: {name: c}}"
	other := inventory("standard")
	other.DefaultVolumeType.Value = "fast"
	cases := []struct {
		name, version string
		next          v1alpha1.Inventory
		spec          string
		want          []string
	}{
		{"a type more", "test", inventory("standard", "new"), base, []string{CauseCloud}},
		{"the configuration", "test", inventory("standard"), "{metadata: {name: c}, spec: {topology: {mode: disabled}}}", []string{CauseConfig}},
		{"the generator", "newer", inventory("standard"), base, []string{CauseGenerator}},
		{"configuration and cloud", "test", other, "{metadata: {name: c}, spec: {trustedCA: true}}", []string{CauseConfig, CauseCloud}},
	}
	for _, c := range cases {
		old := read(t, decide(t, inventory("standard"), base, v1alpha1.Vanilla))
		next := decide(t, c.next, c.spec, v1alpha1.Vanilla)
		next.Generator = c.version
		if diff := cmp.Diff(c.want, Causes(old, next)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestARefusalNamesWhatChanges(t *testing.T) {
	old := read(t, decide(t, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	refusals := Compare(old, decide(t, inventory("standard"), "{metadata: {name: d}}", v1alpha1.Vanilla))
	if len(refusals) != 1 || !strings.Contains(refusals[0].What, "from c to d") {
		t.Errorf("want the old and the new id, got %v", refusals)
	}
}
