package report

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Inventory writes what a cloud offers in at most so many columns, and at the end what is not known.
func Inventory(out io.Writer, inv v1alpha1.Inventory, columns int) error {
	t := newTable(out, columns)
	t.row("Cloud", place(inv.Cloud.AuthURL, inv.Simulated))
	t.row("Region", cmp.Or(inv.Cloud.Region, "-"))
	t.row("Project", inv.Cloud.ProjectID)
	if text := backup(inv.Backup); text != "" {
		t.row("Backup service", text)
	}
	services(t, inv.Services)
	zones(t, inv.Zones)
	types(t, inv)
	quota(t, inv)
	if names := inv.GroupTypes.Value; len(names) > 0 {
		t.head("GROUP TYPES")
		t.row(strings.Join(names, ", "))
	}
	gaps(t, inv)
	return t.flush()
}

// backup says what is known of the backup service. A member of a project often knows nothing of it.
func backup(fact v1alpha1.Fact[v1alpha1.Backup]) string {
	switch {
	case fact.State != v1alpha1.Known:
		return ""
	case fact.Value.Service.State == v1alpha1.Known:
		return fact.Value.Service.Value
	case fact.Value.Made:
		return "only an administrator can see it; the project has a finished backup"
	}
	return "only an administrator can see it"
}

func services(t *table, fact v1alpha1.Fact[map[string]v1alpha1.Service]) {
	t.head("SERVICE", "MICROVERSIONS", "ENDPOINT")
	for _, name := range slices.Sorted(maps.Keys(fact.Value)) {
		t.row(name, versions(fact.Value[name]), endpoint(fact.Value[name]))
	}
}

func versions(s v1alpha1.Service) string {
	if s.MaxMicroversion == "" {
		return "-"
	}
	return s.MinMicroversion + " to " + s.MaxMicroversion
}

func endpoint(s v1alpha1.Service) string {
	if !s.Present {
		return "not in the catalog"
	}
	return s.Endpoint
}

func zones(t *table, z v1alpha1.Zones) {
	state := map[string][2]string{}
	note := func(side int, fact v1alpha1.Fact[[]v1alpha1.Zone]) {
		for _, zone := range fact.Value {
			s := state[zone.Name]
			s[side] = "yes"
			if !zone.Available {
				s[side] = "unavailable"
			}
			state[zone.Name] = s
		}
	}
	note(0, z.Compute)
	note(1, z.Volume)
	t.head("ZONE", "COMPUTE", "VOLUME")
	for _, name := range slices.Sorted(maps.Keys(state)) {
		t.row(name, cmp.Or(state[name][0], "-"), cmp.Or(state[name][1], "-"))
	}
}

func types(t *table, inv v1alpha1.Inventory) {
	all := inv.VolumeTypes.Value
	t.head("VOLUME TYPE", "PROPERTIES", "ZONES", "DESCRIPTION")
	listed := 0
	for _, v := range all {
		isDefault := v.Name == inv.DefaultVolumeType.Value
		if len(all) > most && listed >= most && !isDefault {
			continue
		}
		listed++
		t.row(v.Name, cmp.Or(strings.Join(properties(v, isDefault), ", "), "-"), whereOffered(v), v.Description)
	}
	if len(all) > listed {
		t.line(strings.Join(append([]string{count(len(all), "volume type") + " in all"}, tally(all)...), ", ") + ". -o yaml and -o html show every type.")
	}
}

// properties are what distinguishes a volume type from a plain one.
func properties(v v1alpha1.VolumeType, isDefault bool) []string {
	var has []string
	add := func(name string, b bool) {
		if b {
			has = append(has, name)
		}
	}
	add("default", isDefault)
	add("private", !v.Public)
	add("multiattach", v.Multiattach)
	add("replicated", v.Replication)
	add("encrypted", v.Encryption.Value.Provider != "")
	return has
}

func whereOffered(v v1alpha1.VolumeType) string {
	switch {
	case v.Specs != "":
		return string(v.Specs)
	case len(v.Zones) > 0:
		return strings.Join(v.Zones, ", ")
	}
	return "all"
}

// tally counts the properties that some of many volume types have: "12 multiattach".
func tally(all []v1alpha1.VolumeType) []string {
	counts := map[string]int{}
	for _, v := range all {
		for _, name := range properties(v, false) {
			counts[name]++
		}
		if len(v.Zones) > 0 {
			counts["bound to zones"]++
		}
	}
	var parts []string
	for _, name := range []string{"private", "multiattach", "replicated", "encrypted", "bound to zones"} {
		if counts[name] > 0 {
			parts = append(parts, thousands(counts[name])+" "+name)
		}
	}
	return parts
}

func quota(t *table, inv v1alpha1.Inventory) {
	rows, hidden := quotas(inv)
	if len(rows) > 0 || hidden > 0 {
		t.head("RESOURCE", "LIMIT", "IN USE")
	}
	for _, q := range rows {
		used := "-"
		if q.known {
			used = thousands(q.used)
		}
		t.row(q.name, amount(q.limit), used)
	}
	if hidden > 0 {
		t.line(count(hidden, "more resource") + " without a limit and without use.")
	}
}

func gaps(t *table, inv v1alpha1.Inventory) {
	for i, gap := range factGaps(inv) {
		if i == 0 {
			t.head("NOT KNOWN", "WHY")
		}
		t.row(gap.Name, unknown(gap.State, gap.Reason))
	}
}
