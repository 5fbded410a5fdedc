package guard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// randomCloud has some of a few types under some of a few names, and some zones.
func randomCloud(r *rand.Rand) v1alpha1.Inventory {
	inv := inventory()
	names := []string{"standard", "fast", "slow", "Fast SSD", "a: b -> c = d"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i, name := range names[:r.IntN(len(names)+1)] {
		t := v1alpha1.VolumeType{ID: fmt.Sprintf("id-%d", (i+r.IntN(2))%5), Name: name}
		for _, other := range inv.VolumeTypes.Value {
			if other.ID == t.ID {
				t.ID += "x"
			}
		}
		if r.IntN(3) == 0 {
			t.Zones = []string{"az1"}
		}
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, t)
	}
	inv.DefaultVolumeType.Value = []string{"", "standard", "fast"}[r.IntN(3)]
	zones := func() v1alpha1.Fact[[]v1alpha1.Zone] {
		fact := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "az1"}}}
		if r.IntN(2) == 0 {
			fact.Value = append(fact.Value, v1alpha1.Zone{Name: "az2"})
		}
		return fact
	}
	inv.Zones = v1alpha1.Zones{Compute: zones(), Volume: zones()}
	return inv
}

// randomSpecs are configurations that every random cloud accepts.
var randomSpecs = []string{
	"{metadata: {name: c}}",
	"{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {fsType: xfs}}}}}",
	"{metadata: {name: c}, spec: {storageClasses: {overrides: {id-1: {reclaimPolicy: Retain}}}}}",
	"{metadata: {name: c}, spec: {storageClasses: {volumeBindingMode: Immediate, allowVolumeExpansion: false}}}",
	"{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {volumeBindingMode: Immediate, allowVolumeExpansion: false}}}}}",
	"{metadata: {name: c}, spec: {storageClasses: {exclude: [fast]}}}",
	"{metadata: {name: c}, spec: {storageClasses: {extra: [{name: gold, type: fast}]}}}",
	"{metadata: {name: c}, spec: {topology: {mode: disabled}}}",
	"{metadata: {name: c}, spec: {snapshots: {enabled: false}}}",
	"{metadata: {name: c}, spec: {snapshots: {classes: {weekly: {deletionPolicy: Retain, default: true}}}}}",
	"{metadata: {name: c}, spec: {snapshots: {classes: {weekly: {}, backup: {default: true, parameters: {type: backup}}}}}}",
	"{metadata: {name: d}, spec: {namespaces: {node: x}}}",
	"{metadata: {name: c}, spec: {driver: {name: x.io}, storageClasses: {volumeBindingMode: Immediate}}}",
	"{metadata: {name: c}, spec: {driver: {name: x.io}, storageClasses: {overrides: {fast: {fsType: xfs}}, extra: [{name: gold, type: fast, reclaimPolicy: Retain}]}}}",
}

// A plan that differs has a line. A line about zones holds what the two clouds hold. The configuration with the one pin of the refusals is
// accepted.
func TestRandomPairsOfCloudsAndConfigurations(t *testing.T) {
	pairs := 150
	if testing.Short() {
		pairs = 10
	}
	for seed := range uint64(pairs) {
		r := rand.New(rand.NewPCG(seed, 0))
		before, after := randomCloud(r), randomCloud(r)
		was, is := randomSpecs[r.IntN(len(randomSpecs))], randomSpecs[r.IntN(len(randomSpecs))]
		if r.IntN(2) == 0 {
			is = was
		}
		old := read(t, decide(t, before, was, v1alpha1.Vanilla))
		next := read(t, decide(t, after, is, v1alpha1.Vanilla))
		changes := compare(t, old, after, is, v1alpha1.Vanilla)
		if differ := cmp.Diff(old, next); (differ != "") != (len(changes) > 0) {
			t.Errorf("seed %d: %d changes for the difference (-old +next):\n%s", seed, len(changes), differ)
		}
		for _, c := range changes {
			if was == is && c.Class != v1alpha1.CloudChange {
				t.Errorf("seed %d: only the cloud changed, and not the cause of %s", seed, c.Message)
			}
			for _, f := range c.Facts {
				checkFact(t, seed, f, before, after)
			}
		}
		refused := Refused(changes, nil, false)
		pins, remove := pinsOf(t, refused)
		if left := Refused(compare(t, old, after, pasted(t, is, pins, remove), v1alpha1.Vanilla), nil, false); len(left) > 0 {
			t.Errorf("seed %d: refused with the pin too: %v\n%s\nremove %q", seed, messagesOf(left), pins, remove)
		}
	}
}

// checkFact compares the old and the new value of a list of zones with the two clouds.
func checkFact(t *testing.T, seed uint64, f string, before, after v1alpha1.Inventory) {
	t.Helper()
	for name, of := range map[string]func(v1alpha1.Inventory) []v1alpha1.Zone{
		"zones.compute": func(inv v1alpha1.Inventory) []v1alpha1.Zone { return inv.Zones.Compute.Value },
		"zones.volume":  func(inv v1alpha1.Inventory) []v1alpha1.Zone { return inv.Zones.Volume.Value },
	} {
		text := func(inv v1alpha1.Inventory) string {
			var names []string
			for _, z := range of(inv) {
				names = append(names, z.Name)
			}
			return strings.Join(names, ", ")
		}
		if strings.HasPrefix(f, name+": ") && f != name+": "+text(before)+" -> "+text(after) {
			t.Errorf("seed %d: want %s from %q to %q, got %q", seed, name, text(before), text(after), f)
		}
	}
}
