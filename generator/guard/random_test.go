package guard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/plan"
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

// FuzzPairsOfCloudsAndConfigurations makes a cloud and a configuration of before, and those of now, from each number. A plan that differs has
// a line. A line about zones holds what the two clouds hold. A decision whose value stays is on no line but one of its facts. The
// configuration with the one pin of the refusals is accepted, and what they refused is as it was.
func FuzzPairsOfCloudsAndConfigurations(f *testing.F) {
	pairs := 100
	if testing.Short() {
		pairs = 10
	}
	for seed := range uint64(pairs) {
		f.Add(seed)
	}
	f.Fuzz(checkPair)
}

func checkPair(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	before, after := randomCloud(r), randomCloud(r)
	was, is := randomSpecs[r.IntN(len(randomSpecs))], randomSpecs[r.IntN(len(randomSpecs))]
	if r.IntN(2) == 0 {
		is = was
	}
	old, next := read(t, decide(t, before, was, v1alpha1.Vanilla)), decide(t, after, is, v1alpha1.Vanilla)
	changes := Compare(old, next, Run{Inventory: after, OldConfigs: Today(after, old, next)})
	if differ := cmp.Diff(planText(t, old), planText(t, read(t, next))); (differ != "") != (len(changes) > 0) {
		t.Errorf("%d changes for the difference (-old +next):\n%s", len(changes), differ)
	}
	decidedBefore, decidedNow := decidedIn(old), decidedIn(next)
	for _, c := range changes {
		if was == is && c.Class != v1alpha1.CloudChange {
			t.Errorf("only the cloud changed, and not the cause of %s", c.Message)
		}
		for _, f := range c.Facts {
			checkFact(t, f, before, after)
		}
		ofFacts := slices.Contains([]string{"facts", "reason", "source"}, c.Field)
		if same := equal(decidedBefore.by[c.Decision].Value, decidedNow.by[c.Decision].Value); c.Decision != "" && same != ofFacts {
			t.Errorf("the value of %s stays: %t, and the line is: %s", c.Decision, same, c.Message)
		}
	}
	refused := Refused(changes, nil, false)
	if len(refused) == 0 {
		return
	}
	pins, remove := pinsOf(t, refused)
	pinned := decide(t, after, pasted(t, is, pins, remove), v1alpha1.Vanilla)
	if left := Refused(Compare(old, pinned, Run{Inventory: after, OldConfigs: Today(after, old, pinned)}), nil, false); len(left) > 0 {
		t.Errorf("refused with the pin too: %v\n%s\nremove %q", messagesOf(left), pins, remove)
	}
	for _, c := range refused {
		checkKept(t, c, decidedBefore, decidedIn(pinned))
	}
}

// checkKept compares what was refused with what is decided with the pin. A type that is called otherwise now has its ID as parameter.
func checkKept(t *testing.T, c v1alpha1.Change, was, is decided) {
	t.Helper()
	fields := []string{c.Field}
	for _, k := range kinds {
		if strings.HasPrefix(c.Decision, k.prefix) && (c.New == nil || c.Field == "name") { // the object is gone
			fields = k.immutable
			if k.prefix == plan.SnapshotClassID {
				fields = []string{"deletionPolicy", "parameters"}
			}
		}
	}
	before, object := fieldsOf(was.by[c.Decision].Value)
	now, _ := fieldsOf(is.by[c.Decision].Value)
	if !object {
		before, now, fields = map[string]any{"": was.by[c.Decision].Value}, map[string]any{"": is.by[c.Decision].Value}, []string{""}
	}
	for _, field := range fields {
		want := before[field]
		if class := was.class(c.Decision); field == "parameters" && class.VolumeType.ID != "" && is.class(c.Decision).parameter() == class.VolumeType.ID {
			want = withType(class.StorageClass, class.VolumeType.ID)
		}
		if diff := cmp.Diff(want, now[field]); diff != "" {
			t.Errorf("the pin does not keep %s of %s (-was +is):\n%s\nrefused: %s", field, c.Decision, diff, c.Message)
		}
	}
}

// planText is a plan as plan.yaml has it.
func planText(t *testing.T, p v1alpha1.Plan) string {
	t.Helper()
	text, err := v1alpha1.YAML(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkFact compares the old and the new value of a list of zones with the two clouds.
func checkFact(t *testing.T, f string, before, after v1alpha1.Inventory) {
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
			t.Errorf("want %s from %q to %q, got %q", name, text(before), text(after), f)
		}
	}
}
