package guard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Strict is the default of new bundles for hosted clusters. One of an earlier version keeps its meaning until a person asks.
func TestAnExistingBundleKeepsWhatItProtectsUntilSomebodyAsks(t *testing.T) {
	const base = "{metadata: {name: c}}"
	inv := inventory("standard")
	for name, test := range map[string]struct {
		was  any // the decision of the earlier version; nil where it had none
		spec string
		pin  any
	}{
		"an earlier version":                  {true, base, "enabled"},
		"one that did not protect":            {false, base, "disabled"},
		"one that did not know the setting":   {nil, base, "disabled"},
		"this version":                        {v1alpha1.Strict, base, nil},
		"a configuration that asks for it":    {true, "{metadata: {name: c}, spec: {driver: {protectOtherClusters: strict}}}", nil},
		"a configuration that keeps the rule": {true, "{metadata: {name: c}, spec: {driver: {protectOtherClusters: enabled}}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := decide(t, inv, base, v1alpha1.HostedControlPlane)
			kept := old.Decisions[:0]
			for _, d := range old.Decisions {
				if d.ID == protection {
					if d.Value = test.was; d.Value == nil {
						continue
					}
				}
				kept = append(kept, d)
			}
			old.Decisions = kept
			pin, _ := Pin(Refused(compare(t, read(t, old), inv, test.spec, v1alpha1.HostedControlPlane), nil, false))
			var want any
			if test.pin != nil {
				want = map[string]any{"driver": map[string]any{"protectOtherClusters": test.pin}}
			}
			if diff := cmp.Diff(want, pin); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
		})
	}
}

// OpenShift's plan refuses a namespace without constraints, so a pin that names one would be no way out.
func TestThePinOfANamespaceIsOneThatPlanTakes(t *testing.T) {
	inv := inventory("standard")
	for was, want := range map[string]any{
		"storage":     map[string]any{"namespaces": map[string]any{"controller": "storage"}},
		"kube-system": nil,
	} {
		old := decide(t, inv, "{metadata: {name: c}}", v1alpha1.Standalone)
		for i, d := range old.Decisions {
			if d.ID == plan.IDs.ControllerNamespace.ID {
				old.Decisions[i].Value = was
			}
		}
		pin, _ := Pin(Refused(compare(t, read(t, old), inv, "{metadata: {name: c}}", v1alpha1.Standalone), nil, false))
		var got any
		if pin != nil {
			got = pin
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", was, diff)
		}
	}
}

// A version that decides more than the one before it, and decides it empty, changes no object.
func TestADecisionThatIsNewAndEmptyIsNoDrift(t *testing.T) {
	inv := inventory("standard")
	old := decide(t, inv, "{metadata: {name: c}}", v1alpha1.Vanilla)
	kept := old.Decisions[:0]
	for _, d := range old.Decisions {
		if d.Value != nil && d.Value != "" {
			kept = append(kept, d)
		}
	}
	if len(kept) == len(old.Decisions) {
		t.Fatal("no decision is empty")
	}
	old.Decisions = kept
	if changes := compare(t, read(t, old), inv, "{metadata: {name: c}}", v1alpha1.Vanilla); len(changes) != 0 {
		t.Errorf("want no change, got %v", changes)
	}
}

// An earlier version wrote the name of the type into a VolumeAttributesClass, also where the configuration has the ID. Kubernetes keeps the parameters as
// they are, so the pin names what they say. Without the type nothing keeps the class, and the refusal says so.
func TestAnAttributesClassOfAnEarlierVersionIsPinnedByTheNameOfItsType(t *testing.T) {
	const spec = `{metadata: {name: c}, spec: {kubernetesVersion: "1.34", attributesClasses: {quick: {type: id-fast}}}}`
	inv := inventory("standard", "fast")
	old := decide(t, inv, spec, v1alpha1.Vanilla)
	for i, d := range old.Decisions {
		if c, ok := d.Value.(plan.AttributesClass); ok {
			old.Decisions[i].Value = plan.AttributesClass{Name: c.Name, DriverName: c.DriverName, Parameters: map[string]string{"type": "fast"}}
		}
	}
	refused := Refused(compare(t, read(t, old), inv, spec, v1alpha1.Vanilla), nil, false)
	pin, _ := Pin(refused)
	want := map[string]any{"attributesClasses": map[string]any{"quick": map[string]any{"type": "fast"}}}
	if diff := cmp.Diff(want, pin); diff != "" || len(refused) != 1 {
		t.Fatalf("%d refused, pin (-want +got):\n%s", len(refused), diff)
	}
	pinned := `{metadata: {name: c}, spec: {kubernetesVersion: "1.34", attributesClasses: {quick: {type: fast}}}}`
	if left := Refused(compare(t, read(t, old), inv, pinned, v1alpha1.Vanilla), nil, false); len(left) != 0 {
		t.Errorf("with the pin: %v", left)
	}
}

// The default of strict bundles names the servers by the tag of HyperShift. Servers that are older than the tag would get no volumes.
func TestAnExistingBundleServesEveryServerUntilSomebodyAsks(t *testing.T) {
	const hosted, unknown, own = "hypershift: {infraID: c-1, platform: OpenStack}", "clusterID: c-1, hypershift: {platform: OpenStack}", ", driver: {serverMetadata: {a: b}}"
	inv := inventory("standard")
	for name, test := range map[string]struct {
		was, spec string
		refused   bool
	}{
		"a strict one without the tag":        {unknown, hosted, true},
		"this version":                        {hosted, hosted, false},
		"one that named the servers itself":   {hosted + own, hosted, false},
		"a configuration that names them now": {unknown, hosted + own, false},
	} {
		t.Run(name, func(t *testing.T) {
			old := read(t, decide(t, inv, "{metadata: {name: c}, spec: {"+test.was+"}}", v1alpha1.HostedControlPlane))
			changes := compare(t, old, inv, "{metadata: {name: c}, spec: {"+test.spec+"}}", v1alpha1.HostedControlPlane)
			if refused := Refused(changes, nil, false); len(refused) > 0 != test.refused {
				t.Errorf("refused: %v", refused)
			}
			if left := Refused(changes, []string{Protection}, false); len(left) > 0 {
				t.Errorf("--accept protection does not allow it: %v", left)
			}
		})
	}
}
