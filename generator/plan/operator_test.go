package plan

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// What OpenShift's operator decides for these zones, and what a bundle does. A zone with a minus is listed, but not available.
func TestTopologyIsDecidedAsByOpenShiftsOperator(t *testing.T) {
	const enabled, disabled, fails = "enabled", "disabled", "fails"
	for _, c := range []struct {
		name            string
		compute, volume []string
		operator        string
		ours            string
		differs         string // why; empty where both are the same
	}{
		{name: "one zone", compute: []string{"nova"}, volume: []string{"nova"}, operator: enabled, ours: enabled},
		{name: "a further volume zone", compute: []string{"az0"}, volume: []string{"az0", "az1"}, operator: enabled, ours: enabled},
		{name: "two zones", compute: []string{"az0", "az1"}, volume: []string{"az0", "az1"}, operator: enabled, ours: enabled},
		{name: "one volume zone for two", compute: []string{"az0", "az1"}, volume: []string{"nova"}, operator: disabled, ours: disabled},
		{name: "other names", compute: []string{"nova"}, volume: []string{"cinder"}, operator: disabled, ours: disabled},
		{name: "other case", compute: []string{"AZ0"}, volume: []string{"az0"}, operator: disabled, ours: disabled},
		{
			name: "no volume zone is available", compute: []string{"az0"}, volume: []string{"-az0"}, operator: disabled, ours: enabled,
			differs: "an outage of a zone must not take the zones off all volumes",
		},
		{
			name: "a compute zone is not available", compute: []string{"az0", "-az1"}, volume: []string{"az0"}, operator: enabled, ours: disabled,
			differs: "the decision must be the same when the zone is back",
		},
		{
			name: "no compute zone", volume: []string{"az0"}, operator: fails, ours: disabled,
			differs: "a project may be allowed to list none; the plan says why topology is off",
		},
		{
			name: "no volume zone", compute: []string{"az0"}, operator: fails, ours: disabled,
			differs: "a project may be allowed to list none; the plan says why topology is off",
		},
		{
			name: "a zone twice", compute: []string{"az0", "az0"}, volume: []string{"az0"}, operator: disabled, ours: enabled,
			differs: "the operator compares the lengths of the lists, not the zones",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if (c.operator == c.ours) != (c.differs == "") {
				t.Errorf("the row must say why it differs, and only then")
			}
			inv := cloudOf("standard")
			inv.Zones = v1alpha1.Zones{Compute: zonesWith(c.compute), Volume: zonesWith(c.volume)}
			if got := decide(t, inv, "", v1alpha1.Standalone).Topology; got.Value != (c.ours == enabled) || got.Reason == "" {
				t.Errorf("want topology %s, got %t: %s", c.ours, got.Value, got.Reason)
			}
		})
	}
}

// zonesWith are zones, without availability where the name has a minus.
func zonesWith(names []string) v1alpha1.Fact[[]v1alpha1.Zone] {
	zones := []v1alpha1.Zone{}
	for _, name := range names {
		z := v1alpha1.Zone{Name: name, Available: true}
		if name[0] == '-' {
			z = v1alpha1.Zone{Name: name[1:]}
		}
		zones = append(zones, z)
	}
	return knownFact(zones)
}
