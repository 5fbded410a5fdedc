package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// gates are what a Kubernetes may lack, as the configuration of the generator and the values of the chart ask for it.
var gates = []struct{ name, spec, values string }{
	{"nothing more", "", ""},
	{"the drain hook", "nodeLifecycle: {drainHook: true}", "nodeLifecycle: {drainHook: true}"},
	{"VolumeAttributesClasses", "attributesClasses: {gold: {metadata: {tier: gold}}}", "attributesClasses: [{name: gold, parameters: {metadata.tier: gold}}]"},
}

func TestTheChartHasTheKubernetesGatesOfTheGenerator(t *testing.T) {
	for minor := 26; minor <= 36; minor++ {
		version := fmt.Sprintf("1.%d", minor)
		for _, g := range gates {
			r, problem := decideFor(t, fmt.Sprintf("{kubernetesVersion: %q, %s}", version, g.spec))
			_, err := render(t, parse(t, fmt.Sprintf("kubernetesVersion: %q\n%s", version, g.values)))
			if (problem == nil) != (err == nil) {
				t.Errorf("%s on %s: the generator says %v, the chart %v", g.name, version, problem, err)
			}
			if err != nil && !strings.Contains(err.Error(), "kubernetesVersion is "+version) {
				t.Errorf("%s on %s: want the version in the message, got %v", g.name, version, err)
			}
			if problem != nil || g.spec != "" {
				continue
			}
			_, err = render(t, parse(t, fmt.Sprintf("kubernetesVersion: %q\ndriver: {limitRefreshSeconds: 60}", version)))
			if refreshes := r.LimitRefresh.Value > 0; refreshes != (err == nil) {
				t.Errorf("limits asked for again on %s: the generator does so: %t, the chart says %v", version, refreshes, err)
			}
		}
	}
}

func TestAVersionOfKubernetesThatIsNoneIsRefused(t *testing.T) {
	for _, version := range []string{"1.30", `"2.0"`, `"latest"`} { // the first is a number, 1.3
		if _, err := render(t, parse(t, "kubernetesVersion: "+version)); err == nil || !strings.Contains(err.Error(), "/kubernetesVersion") {
			t.Errorf("%s: want it refused with its key, got %v", version, err)
		}
	}
	for _, version := range []string{`""`, `"v1.34.2"`, `"1.34"`} {
		if _, err := render(t, parse(t, "kubernetesVersion: "+version+"\n"+gates[2].values)); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// decideFor plans for a cloud with one zone and one type.
func decideFor(t *testing.T, spec string) (plan.Result, error) {
	t.Helper()
	zones := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "nova", Available: true}}}
	inventory := v1alpha1.Inventory{
		Cloud:             v1alpha1.Cloud{AuthURL: "https://keystone.example/v3", Region: "R", ProjectID: "p"},
		Services:          v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known},
		Zones:             v1alpha1.Zones{Compute: zones, Volume: zones},
		VolumeTypes:       v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known, Value: []v1alpha1.VolumeType{{ID: "id-fast", Name: "fast"}}},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Known, Value: "fast"},
	}
	d, err := v1alpha1.DecodeDistribution("test.yaml", []byte("{metadata: {name: prod}, spec: "+spec+"}"))
	if err != nil {
		t.Fatal(err)
	}
	return plan.Decide(inventory, d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
}

func TestTheTokenOfTheGuestNeedsInitContainersThatStay(t *testing.T) {
	for version, refused := range map[string]bool{"1.28": true, "1.29": false} {
		_, err := render(t, parse(t, fmt.Sprintf("target: hypershift\nplane: management\nkubernetesVersion: %q", version)))
		if got := err != nil && strings.Contains(err.Error(), "hypershift.guestAccess: serviceAccountToken needs Kubernetes 1.29"); got != refused {
			t.Errorf("on %s: want a refusal %t, got %v", version, refused, err)
		}
	}
}
