package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// What a configuration could say of the cloud of the last plan, and cannot say of that of today, is an event of the cloud. Without a last plan it is a mistake.
func TestAnEventOfTheCloudIsNoMistakeOfTheConfiguration(t *testing.T) {
	const zoned = "spec: {topology: {mode: enabled}, storageClasses: {default: fast}}"
	typed := func(pairs ...string) v1alpha1.Inventory { // ID, name
		inv := cloudOf()
		for i := 0; i < len(pairs); i += 2 {
			inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: pairs[i], Name: pairs[i+1], Public: true})
		}
		return inv
	}
	elsewhere := cloudOf("fast")
	elsewhere.VolumeTypes.Value[0].Zones = []string{"nowhere"}
	for name, c := range map[string]struct {
		spec          string
		before, after v1alpha1.Inventory
		says          string
		classes       string
	}{
		"the default type is renamed":           {"spec: {storageClasses: {default: fast}}", typed("1", "fast"), typed("1", "quick"), `no volume type of id or name "fast" any more`, "quick"},
		"the default type, by ID, is recreated": {"spec: {storageClasses: {default: '1'}}", typed("1", "fast"), typed("2", "fast"), `no volume type of id or name "1" any more`, "fast"},
		"the default type is removed":           {"spec: {storageClasses: {default: fast}}", typed("1", "fast", "2", "slow"), typed("2", "slow"), `no volume type of id or name "fast" any more`, "slow"},
		"the default type leaves every node": {zoned, cloudOf("fast", "slow"), func() v1alpha1.Inventory {
			inv := cloudOf("fast", "slow")
			inv.VolumeTypes.Value[0].Zones = []string{"nowhere"}
			return inv
		}(), "no class is the default", "slow"},
		"a new type has the name of an extra class": {
			"spec: {storageClasses: {default: none, extra: [{name: gold, type: fast}]}}", typed("1", "fast"), typed("1", "fast", "2", "gold"), `another class has the name "gold"`, "fast gold",
		},
		"a new type has the name that an override gives": {
			"spec: {storageClasses: {default: none, overrides: {fast: {name: gold}}}}", typed("1", "fast"), typed("1", "fast", "2", "gold"), `volume type "gold" (ID 2) has no class`, "gold",
		},
		"a type gets the name of another override": {
			"spec: {storageClasses: {default: none, overrides: {'1': {reclaimPolicy: Retain}, slow: {fsType: xfs}}}}", typed("1", "fast", "2", "slow"), typed("1", "slow", "2", "old"), "overrides.slow changes nothing", "old slow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := configured(t, c.spec)
			first, err := Decide(c.before, d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
			if err != nil {
				t.Fatal(err)
			}
			last := first.Document(nil)
			r, err := Again(&last, c.after, d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Failures, func(w string) bool { return strings.Contains(w, c.says) }) {
				t.Errorf("want a warning that says %q, got %q", c.says, r.Failures)
			}
			if got := strings.Join(classNames(r), " "); got != c.classes {
				t.Errorf("want the classes %s, got %s", c.classes, got)
			}
			last = r.Document(nil)
			again, err := Again(&last, c.after, d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
			if err != nil || !slices.Equal(again.Warnings, r.Warnings) {
				t.Errorf("the next run: %v, warnings %q, and before %q", err, again.Warnings, r.Warnings)
			}
			if _, err := Decide(c.after, d, v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil {
				t.Error("without a last plan it is a mistake, and was accepted")
			}
			other := first.Document(nil)
			other.Cloud.ProjectID = "another"
			if _, err := Again(&other, c.after, d, v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil {
				t.Error("the plan of another cloud excuses nothing")
			}
		})
	}
}

// Each fact that may be denied, in each state that the last plan may have it in. The next plan is the same, with one line about the right.
func TestWhatIsDeniedStaysAsInTheLastPlan(t *testing.T) {
	cloud := func(change func(*v1alpha1.Inventory)) v1alpha1.Inventory {
		inv := cloudOf("fast", "none", "slow")
		inv.VolumeTypes.Value[0].Zones = []string{"az1"}
		inv.VolumeTypes.Value[2].Zones = []string{"nowhere"}
		inv.Backup = knownFact(v1alpha1.Backup{})
		change(&inv)
		return inv
	}
	service := func(max string, state v1alpha1.State) func(*v1alpha1.Inventory) {
		return func(inv *v1alpha1.Inventory) {
			s := inv.Services.Value[blockStorage]
			s.MaxMicroversion, s.Versions = max, state
			inv.Services.Value[blockStorage] = s
		}
	}
	asDefault := func(f v1alpha1.Fact[string]) func(*v1alpha1.Inventory) {
		return func(inv *v1alpha1.Inventory) { inv.DefaultVolumeType = f }
	}
	for name, c := range map[string]struct {
		before, denied func(*v1alpha1.Inventory)
		says           string // empty: nothing is missed
	}{
		"a default type":                   {asDefault(knownFact("fast")), asDefault(without[string](v1alpha1.Denied)), "types/default"},
		"a default type that is called so": {asDefault(knownFact("none")), asDefault(without[string](v1alpha1.Denied)), "types/default"},
		"a cloud without a default type":   {asDefault(knownFact("")), asDefault(without[string](v1alpha1.Denied)), "types/default"},
		"a cloud without the question":     {asDefault(without[string](v1alpha1.Unsupported)), asDefault(without[string](v1alpha1.Denied)), "types/default"},
		"a default type that was denied":   {asDefault(without[string](v1alpha1.Denied)), asDefault(without[string](v1alpha1.Denied)), ""},
		"a new Cinder":                     {service("3.70", ""), service("", v1alpha1.Denied), "GET /v3/"},
		"an old Cinder":                    {service("3.59", ""), service("", v1alpha1.Denied), "GET /v3/"},
		"versions that were denied":        {service("", v1alpha1.Denied), service("", v1alpha1.Denied), ""},
		"an inventory of before":           {service("3.70", ""), func(inv *v1alpha1.Inventory) { inv.Services = without[map[string]v1alpha1.Service](v1alpha1.Denied) }, "GET /v3/"},
		"backups":                          {func(*v1alpha1.Inventory) {}, func(inv *v1alpha1.Inventory) { inv.Backup = without[v1alpha1.Backup](v1alpha1.Denied) }, "backups"},
		"no backups":                       {func(inv *v1alpha1.Inventory) { inv.Backup = without[v1alpha1.Backup](v1alpha1.Unsupported) }, func(inv *v1alpha1.Inventory) { inv.Backup = without[v1alpha1.Backup](v1alpha1.Denied) }, "backups"},
		"zones of types":                   {func(*v1alpha1.Inventory) {}, specs(v1alpha1.Denied), "extra_specs"},
		"zones that no member sees":        {specs(v1alpha1.Unsupported), specs(v1alpha1.Denied), "extra_specs"},
		"zones of types that were denied":  {specs(v1alpha1.Denied), specs(v1alpha1.Denied), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := configured(t, "{metadata: {name: c}}")
			first, err := Decide(cloud(c.before), d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
			if err != nil {
				t.Fatal(err)
			}
			want := first.Document(nil)
			inv, lines := Remember(want, cloud(c.denied))
			r, err := Again(&want, inv, d, v1alpha1.Vanilla, v1alpha1.Helm, "test")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, r.Document(nil)); diff != "" {
				t.Errorf("(-last +next):\n%s", diff)
			}
			if got := strings.Join(lines, "\n"); len(lines) > 1 || c.says == "" && got != "" || !strings.Contains(got, c.says) {
				t.Errorf("want one line with %q, got %q", c.says, lines)
			}
			want.Cloud.Region = "another"
			if _, lines := Remember(want, cloud(c.denied)); len(lines) != 0 {
				t.Errorf("the plan of another cloud answers: %q", lines)
			}
		})
	}
}

// specs gives the extra specs of each volume type a state.
func specs(state v1alpha1.State) func(*v1alpha1.Inventory) {
	return func(inv *v1alpha1.Inventory) {
		for i := range inv.VolumeTypes.Value {
			inv.VolumeTypes.Value[i].Zones, inv.VolumeTypes.Value[i].Specs = nil, state
		}
	}
}

// The author of a pull request writes plan.yaml. What stays from there is an answer that this cloud could give.
func TestOnlyAValueOfAFactStaysFromTheLastPlan(t *testing.T) {
	denied := cloudOf("fast", "slow")
	denied.DefaultVolumeType, denied.Backup = without[string](v1alpha1.Denied), without[v1alpha1.Backup](v1alpha1.Denied)
	cinder := denied.Services.Value[blockStorage]
	cinder.Versions = v1alpha1.Denied
	denied.Services.Value[blockStorage] = cinder
	specs(v1alpha1.Denied)(&denied)
	for name, values := range map[string][2][]string{ // those that stay, and those that do not
		defaultFact:       {{"fast", "none", "unsupported"}, {"gone", "run attacker first", "fast, slow", "fast\n", "denied", "failed", ""}},
		snapshotFact:      {{"true", "false"}, {"unsupported", "True", "yes", "run attacker first", ""}},
		backupFact:        {{"known", "unsupported"}, {"true", "failed", "denied", "run attacker first", ""}},
		ZonesFact("fast"): {{"az1", "az1, az2", "elsewhere", "none", "az1, AZ 2"}, {"run attacker first", "az1, https://attacker.example", "a\nb", "az1,az2", ""}},
	} {
		for i, list := range values {
			for _, value := range list {
				last := v1alpha1.Plan{Cloud: denied.Cloud, Decisions: []v1alpha1.Decision{{ID: "x", Facts: []v1alpha1.NamedFact{{Name: "zones.volume", Value: "az1, AZ 2"}, {Name: name, Value: value}}}}}
				inv, lines := Remember(last, denied)
				if changed := cmp.Diff(denied, inv); (changed != "") != (i == 0) || i == 1 && len(lines) > 0 {
					t.Errorf("%s: %q: stays %t, want %t: %q", name, value, changed != "", i == 0, lines)
				}
			}
		}
	}
}

func TestACloudWithoutEndIsNotDecidedOn(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Inventory){
		"types": func(inv *v1alpha1.Inventory) {
			inv.VolumeTypes.Value = make([]v1alpha1.VolumeType, v1alpha1.MostTypes+1)
		},
		"compute zones": func(inv *v1alpha1.Inventory) { inv.Zones.Compute.Value = make([]v1alpha1.Zone, mostZones+1) },
		"volume zones":  func(inv *v1alpha1.Inventory) { inv.Zones.Volume.Value = make([]v1alpha1.Zone, mostZones+1) },
	} {
		inv := cloudOf("fast")
		change(&inv)
		if _, err := Decide(inv, configured(t, "{}"), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err == nil || !strings.Contains(err.Error(), "A bundle is made for at most 5000 and 1000") {
			t.Errorf("%s: want an error that names the bounds, got %v", name, err)
		}
	}
}
