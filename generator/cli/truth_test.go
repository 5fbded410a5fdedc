package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var truthSeed = flag.Int("truth.seed", -1, "run one pair of TestEveryLineOfACheckIsTrue: that with this seed")

// truthSpecs are configurations that every cloud of randomInventory accepts.
var truthSpecs = []string{
	"",
	"storageClasses: {overrides: {fast: {fsType: xfs}}}",
	"storageClasses: {overrides: {standard: {reclaimPolicy: Retain}, fast: {reclaimPolicy: Retain}}}",
	"storageClasses: {overrides: {standard: {reclaimPolicy: Retain, parameters: {availability: az1}}}}",
	"storageClasses: {overrides: {fast: {name: quick, volumeBindingMode: Immediate}}}",
	"storageClasses: {exclude: [fast], volumeBindingMode: Immediate}",
	"storageClasses: {extra: [{name: gold, type: fast, reclaimPolicy: Retain}], namePrefix: os-}",
	"topology: {mode: disabled}",
	"topology: {mode: enabled, zoneMap: {az2: az1}}",
	"snapshots: {enabled: false}",
	"snapshots: {backup: disabled, classes: {weekly: {deletionPolicy: Retain, default: true}}}",
	"clusterID: other",
	"namespaces: {node: other}",
	"driver: {name: other.example, logLevel: 5}",
	"kubernetesVersion: '1.34', attributesClasses: {gold: {metadata: {team: storage}}}",
	"nodePools: [{name: gpu, nodeSelector: {pool: gpu}, volumeAttachLimit: 20}]",
}

// A bundle is written for one cloud and configuration, and checked with another cloud, another configuration, or both. What the check says is
// true: see the functions below. The pair of a failure runs alone with -truth.seed. With -full, there are 100 pairs.
func TestEveryLineOfACheckIsTrue(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	base := b.ok(t, "inspect", "--simulated", "-o", "yaml")
	pairs := 15
	if testenv.Full() {
		pairs = 100
	}
	for seed := range max(pairs, *truthSeed+1) {
		if *truthSeed >= 0 && seed != *truthSeed {
			continue
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 2))
			p := pair{bed: b, dir: filepath.Join(b.dir, fmt.Sprint(seed)), target: targets[r.IntN(2)], format: formats[min(1, r.IntN(4))]}
			p.was, p.is = truthSpecs[r.IntN(len(truthSpecs))], truthSpecs[r.IntN(len(truthSpecs))]
			p.before, p.after = randomInventory(t, b, base, r, "before.yaml"), randomInventory(t, b, base, r, "after.yaml")
			switch r.IntN(3) {
			case 0:
				p.is = p.was
			case 1:
				p.after = p.before
			}
			p.check(t)
		})
	}
}

// pair is a bundle that was written, and what it is compared with.
type pair struct {
	*bed
	dir, target, format string
	was, is             string // configurations
	before, after       string // files with inventories
}

func (p pair) config(t *testing.T, spec string) string {
	t.Helper()
	const image = "images: {driver: {registry: registry.example, repository: driver, tag: v1}}"
	return p.file(t, "config.yaml", "metadata: {name: c}\nspec: {"+strings.Trim(image+", "+spec, ", ")+"}\n")
}

func (p pair) check(t *testing.T) {
	p.ok(t, "generate", "--inventory", p.before, "--config", p.config(t, p.was), "--target", p.target, "--format", p.format, "--output-dir", p.dir)
	args := []string{"--inventory", p.after, "--config", p.config(t, p.is)}
	checked, code := p.changes(t, append(args, "generate", "--check", "--output-dir", p.dir)...)
	if (code == Different) != (len(checked.Files) > 0) || (code == Different) != (len(checked.Changes) > 0) || checked.UpToDate != (code == OK) {
		t.Errorf("exit %d with %d changes of %d files", code, len(checked.Changes), len(checked.Files))
	}
	p.checkDecisions(t, checked, args)
	p.checkCauses(t, checked)
	p.checkFacts(t, checked)
	p.checkValues(t, checked, args)
	p.checkPin(t, checked)
}

// changes runs a check that prints JSON.
func (p pair) changes(t *testing.T, args ...string) (v1alpha1.Changes, int) {
	t.Helper()
	i := slices.IndexFunc(args, func(a string) bool { return a == "generate" || a == "plan" })
	stdout, stderr, code := p.run(t, append(slices.Concat(args[i:], args[:i]), "-o", "json")...)
	var c v1alpha1.Changes
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatalf("%q: exit %d, %v: %s%s", args, code, err, stdout, stderr)
	}
	return c, code
}

// checkDecisions: plan --check finds the same changes of decisions, and no others.
func (p pair) checkDecisions(t *testing.T, checked v1alpha1.Changes, args []string) {
	t.Helper()
	planned, code := p.changes(t, append(args, "plan", "--check", filepath.Join(p.dir, "plan.yaml"))...)
	want := map[bool]int{false: OK, true: Different}[slices.ContainsFunc(checked.Changes, ofDecision)]
	if code != want {
		t.Errorf("plan --check: want exit %d, got %d for the changes %v", want, code, messages(checked))
	}
	// A plan without a warning may be that of a drift check, which has none.
	checked.Changes = slices.DeleteFunc(slices.Clone(checked.Changes), func(c v1alpha1.Change) bool { return c.Field == "warnings" })
	planned.Changes = slices.DeleteFunc(planned.Changes, func(c v1alpha1.Change) bool { return c.Field == "warnings" })
	if diff := cmp.Diff(messages(checked), messages(planned)); code == Different && diff != "" {
		t.Errorf("the lines (-generate --check +plan --check):\n%s", diff)
	}
}

func messages(c v1alpha1.Changes) []string {
	var all []string
	for _, change := range c.Changes {
		all = append(all, change.Message)
	}
	return all
}

// checkCauses: where only the configuration changed, nothing blames the cloud, and the other way round.
func (p pair) checkCauses(t *testing.T, checked v1alpha1.Changes) {
	t.Helper()
	for _, c := range checked.Changes {
		switch {
		case p.before == p.after && c.Class == v1alpha1.CloudChange, p.was == p.is && c.Class == v1alpha1.ConfigChange, c.Class == v1alpha1.GeneratorChange, c.Class == v1alpha1.HandEdit:
			t.Errorf("blames %s: %s", c.Class, c.Message)
		}
	}
}

// factName is the name of a fact of a type, by its name or its ID.
var factName = regexp.MustCompile(`^volumeTypes\[(.*)\]\.(zones|name|id)$`)

// factOf is what an inventory says about a fact, as lines name it.
func factOf(t *testing.T, inv v1alpha1.Inventory, name string) string {
	t.Helper()
	zones := func(list []v1alpha1.Zone) string {
		var names []string
		for _, z := range list {
			names = append(names, z.Name)
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	switch name {
	case "zones.compute":
		return zones(inv.Zones.Compute.Value)
	case "zones.volume":
		return zones(inv.Zones.Volume.Value)
	case "defaultVolumeType":
		return inv.DefaultVolumeType.Value
	}
	m := factName.FindStringSubmatch(name)
	if m == nil {
		t.Fatalf("a fact that this test does not know: %s", name)
	}
	for _, v := range inv.VolumeTypes.Value {
		switch {
		case m[2] == "zones" && v.Name == m[1] && v.Zones != nil:
			return strings.Join(v.Zones, ", ")
		case m[2] == "name" && v.ID == m[1]:
			return v.Name
		case m[2] == "id" && v.Name == m[1]:
			return v.ID
		}
	}
	return "none"
}

// checkFacts: the old and the new value of each fact are those of the two clouds.
func (p pair) checkFacts(t *testing.T, checked v1alpha1.Changes) {
	t.Helper()
	before, after := p.inventory(t, p.before), p.inventory(t, p.after)
	for _, c := range checked.Changes {
		for _, fact := range c.Facts {
			name, values, _ := strings.Cut(fact, ": ")
			was, is, _ := strings.Cut(values, " -> ")
			if wantWas, wantIs := factOf(t, before, name), factOf(t, after, name); was != wantWas || is != wantIs || was == is {
				t.Errorf("want %s from %q to %q, got %q: %s", name, wantWas, wantIs, fact, c.Message)
			}
		}
	}
}

func (p pair) inventory(t *testing.T, file string) v1alpha1.Inventory {
	t.Helper()
	content, err := readFile(&p.World, file)
	inv, decoding := v1alpha1.DecodeInventory(file, content)
	if err := errors.Join(err, decoding); err != nil {
		t.Fatal(err)
	}
	return inv
}

// checkValues: the old and the new value of each decision are those of the two plans.
func (p pair) checkValues(t *testing.T, checked v1alpha1.Changes, args []string) {
	t.Helper()
	content, err := readFile(&p.World, filepath.Join(p.dir, "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	old := decisionsOf(t, string(content))
	next := decisionsOf(t, p.ok(t, slices.Concat([]string{"plan", "--target", p.target, "-o", "yaml"}, args)...))
	for _, c := range checked.Changes {
		if c.Decision == "" || c.Field == "name" && strings.HasPrefix(c.Decision, "storageClass.") {
			continue // a class that is renamed has another decision
		}
		if want, got := old[c.Decision].part(c.Field), c.Old; !reflect.DeepEqual(want, got) {
			t.Errorf("%s: old: want %v, got %v", c.Message, want, got)
		}
		if want, got := next[c.Decision].part(c.Field), c.New; !reflect.DeepEqual(want, got) {
			t.Errorf("%s: new: want %v, got %v", c.Message, want, got)
		}
	}
}

// decided is one decision of a plan, as JSON has it.
type decided map[string]any

func decisionsOf(t *testing.T, plan string) map[string]decided {
	t.Helper()
	var read struct{ Decisions []decided }
	if err := yaml.Unmarshal([]byte(plan), &read); err != nil {
		t.Fatal(err)
	}
	all := map[string]decided{}
	for _, d := range read.Decisions {
		all[d["id"].(string)] = d
	}
	return all
}

func (d decided) part(field string) any {
	switch field {
	case "":
		return d["value"]
	case "facts", "reason", "source":
		return d[field]
	}
	value, _ := d["value"].(map[string]any)
	return value[field]
}

// checkPin: generate refuses what the check says. With the pin, and without the keys that it names, it refuses nothing more: what it refused
// is as it was.
func (p pair) checkPin(t *testing.T, checked v1alpha1.Changes) {
	t.Helper()
	args := []string{"generate", "--inventory", p.after, "--output-dir", p.dir, "--config"}
	before := p.built(t)
	_, stderr, code := p.run(t, append(args, p.config(t, p.is))...)
	if refuses := len(checked.Accept) > 0 || checked.Force; refuses != (code == Refused) || !refuses && code != OK {
		t.Fatalf("the check names --accept %v, and generate ends with %d: %s", checked.Accept, code, stderr)
	}
	if code == OK {
		p.checkKept(t, before, nil)
		return
	}
	_, pin, _ := strings.Cut(stderr, "add this to the configuration:\n")
	_, remove, _ := strings.Cut(stderr, "remove these keys from the configuration:\n")
	remove, _, _ = strings.Cut(remove, "to keep what was")
	var config, add map[string]any
	content, err := readFile(&p.World, p.config(t, p.is))
	if err := errors.Join(err, yaml.Unmarshal(content, &config), yaml.Unmarshal([]byte(pin), &add)); err != nil {
		t.Fatalf("%v: %s", err, pin)
	}
	for path := range strings.Lines(remove) {
		dropKey(t, config, strings.TrimSpace(path))
	}
	addKeys(config, add)
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, code := p.run(t, append(args, p.file(t, "pasted.yaml", string(text)))...); code != OK {
		t.Fatalf("exit %d with the pin:\n%s\nthe first refusal was:\n%s\nthe second:\n%s", code, text, stderr, again)
	}
	p.checkKept(t, before, slices.DeleteFunc(slices.Clone(checked.Changes), func(c v1alpha1.Change) bool { return c.Refused == "" }))
}

// dropKey removes what is at a path such as a.b or a.b[0] (name: x).
func dropKey(t *testing.T, object map[string]any, path string) {
	t.Helper()
	path, _, _ = strings.Cut(path, " (")
	for _, key := range slices.SortedFunc(maps.Keys(object), func(a, b string) int { return len(b) - len(a) }) {
		rest, found := strings.CutPrefix(path, key)
		below, isObject := object[key].(map[string]any)
		list, isList := object[key].([]any)
		var i int
		switch {
		case !found:
			continue
		case rest == "":
			delete(object, key)
		case rest[0] == '.' && isObject:
			dropKey(t, below, rest[1:])
		case isList:
			if _, err := fmt.Sscanf(rest, "[%d]", &i); err != nil {
				t.Fatal(err)
			}
			object[key] = slices.Delete(list, i, i+1)
		default:
			continue
		}
		return
	}
	t.Errorf("the configuration has no %s to remove", path)
}

// addKeys adds one document to another as a person pastes it: lists grow, and other values are replaced.
func addKeys(into, more map[string]any) {
	for key, value := range more {
		old, isObject := into[key].(map[string]any)
		next, both := value.(map[string]any)
		list, isList := into[key].([]any)
		items, bothLists := value.([]any)
		switch {
		case isObject && both:
			addKeys(old, next)
		case isList && bothLists:
			into[key] = append(list, items...)
		default:
			into[key] = value
		}
	}
}
