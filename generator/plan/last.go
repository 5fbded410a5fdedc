package plan

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func sameCloud(p v1alpha1.Plan, inv v1alpha1.Inventory) bool {
	return p.Cloud.Region == inv.Cloud.Region && p.Cloud.ProjectID == inv.Cloud.ProjectID && p.Simulated == inv.Simulated
}

// Remember fills in what this credential may not read from the facts that the last plan rests on. A missing right is not a fact of the cloud: it
// decides nothing. So two people with two credentials make the same bundle. Each line says what stays, and which right is missing.
func Remember(last v1alpha1.Plan, inv v1alpha1.Inventory) (v1alpha1.Inventory, []string) {
	if !sameCloud(last, inv) {
		return inv, nil
	}
	m := memoryOf(last, inv)
	m.fill()
	return m.inv, m.lines
}

// Recorded is the inventory as the facts of the last plan have it. A plan for it has the sentences of that time.
func Recorded(last v1alpha1.Plan, inv v1alpha1.Inventory) v1alpha1.Inventory {
	m := memoryOf(last, inv)
	m.all = true
	m.zones("zones.compute", &m.inv.Zones.Compute)
	m.zones("zones.volume", &m.inv.Zones.Volume)
	m.fill()
	return m.inv
}

// memory is one run of Remember, or of Recorded.
type memory struct {
	last  Result
	facts map[string]string // of the last plan, by name
	all   bool              // not those alone that this credential may not read
	inv   v1alpha1.Inventory
	lines []string
}

func memoryOf(last v1alpha1.Plan, inv v1alpha1.Inventory) *memory {
	m := &memory{facts: map[string]string{}, inv: inv}
	m.last, _, _ = Restore(last)
	for _, d := range last.Decisions {
		for _, f := range d.Facts {
			m.facts[f.Name] = f.Value
		}
	}
	return m
}

func (m *memory) fill() {
	m.defaultType()
	m.versions()
	m.backup()
	m.zonesOfTypes()
}

// kept is the value of a fact in the last plan. False: this credential may read it, the last plan did not know it either, or it is none of the values.
// The author of a pull request may write any text into the plan.
func (m *memory) kept(name string, state v1alpha1.State, values ...string) (string, bool) {
	value, there := m.facts[name]
	if m.all {
		now, known := FactNow(m.inv, name)
		return value, there && (!known || now != value)
	}
	return value, there && state == v1alpha1.Denied && slices.Contains(values, value)
}

var plainName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]*$`)

// PlainName is whether a text is a name, and neither a sentence nor an address. Names of a cloud may be others.
func PlainName(text string) bool { return plainName.MatchString(text) }

// zones fills in the zones of a service.
func (m *memory) zones(name string, fact *v1alpha1.Fact[[]v1alpha1.Zone]) {
	value, kept := m.kept(name, fact.State)
	if !kept || fact.State != v1alpha1.Known {
		return
	}
	fact.Value = nil
	for _, zone := range namesIn(value) {
		fact.Value = append(fact.Value, v1alpha1.Zone{Name: zone, Available: true})
	}
}

func (m *memory) say(name, value, reason string) {
	m.lines = append(m.lines, fmt.Sprintf("%s stays as in the last plan (%s): %s", name, value, missingRight(name, reason)))
}

func (m *memory) defaultType() {
	fact := &m.inv.DefaultVolumeType
	value, kept := m.kept(defaultFact, fact.State, append(typeNames(m.inv.VolumeTypes.Value), none, string(v1alpha1.Unsupported))...)
	if !kept {
		return
	}
	m.say(defaultFact, value, fact.Reason)
	_, isName := findType(m.inv.VolumeTypes.Value, value)
	isName = isName && m.last.DefaultClass.Value != "" // a type may have the name "none"
	switch {
	case value == string(v1alpha1.Unsupported) && !isName:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Unsupported}
	case value == string(v1alpha1.Denied) && !isName:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Denied}
	case value == none && !isName:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Known}
	default:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Known, Value: value}
	}
}

// versions fills in a version of Cinder that gives the decision of the last plan.
func (m *memory) versions() {
	versions := m.inv.VersionsOf(blockStorage)
	value, kept := m.kept(snapshotFact, versions.State, "true", "false")
	if !kept {
		return
	}
	m.say(snapshotFact, value, versions.Reason)
	service := m.inv.Services.Value[blockStorage]
	service.Versions, service.Reason, service.MaxMicroversion = "", "", "3.0"
	switch value {
	case "true":
		service.MaxMicroversion = snapshotInUse
	case string(v1alpha1.Denied), string(v1alpha1.Unsupported):
		service.Versions = v1alpha1.State(value)
	}
	m.inv.Services.Value = maps.Clone(m.inv.Services.Value)
	if m.inv.Services.Value == nil {
		m.inv.Services.Value = map[string]v1alpha1.Service{}
	}
	m.inv.Services.Value[blockStorage] = service
}

func (m *memory) backup() {
	if value, kept := m.kept(backupFact, m.inv.Backup.State, string(v1alpha1.Known), string(v1alpha1.Unsupported)); kept {
		m.say(backupFact, value, m.inv.Backup.Reason)
		m.inv.Backup.State = v1alpha1.State(value)
	}
}

// namesIn is the opposite of namesText.
func namesIn(text string) []string {
	if text == none {
		return nil
	}
	return strings.Split(text, ", ")
}

// zonesOfTypes fills in the zones of each volume type whose extra specs are denied. The last plan names them where a type is bound to zones. A type
// with a class is bound to none otherwise, unless that plan did not know them either.
func (m *memory) zonesOfTypes() {
	names := map[string]string{} // at that time, by ID
	for _, c := range m.last.StorageClasses {
		names[c.Value.VolumeType.ID] = c.Value.VolumeType.Name
	}
	var kept []string
	volumeZones := append(zoneNames(m.inv.Zones.Volume.Value), namesIn(m.facts["zones.volume"])...) // a type may be bound to one that is gone
	m.inv.VolumeTypes.Value = slices.Clone(m.inv.VolumeTypes.Value)
	for i := range m.inv.VolumeTypes.Value {
		t := &m.inv.VolumeTypes.Value[i]
		if t.Specs != v1alpha1.Denied && !m.all {
			continue
		}
		name, hadClass := names[t.ID]
		text, bound := m.facts[ZonesFact(cmp.Or(name, t.Name))]
		zones := namesIn(text)
		switch {
		case bound && !m.all && slices.ContainsFunc(zones, func(z string) bool { return !slices.Contains(volumeZones, z) && !PlainName(z) }):
			continue
		case slices.Contains(m.last.Warnings, zonesUnsupported):
			t.Specs = v1alpha1.Unsupported
		case bound:
			t.Specs, t.Zones = "", zones
		case hadClass && m.last.Topology.Value && !slices.ContainsFunc(m.last.Warnings, func(w string) bool { return strings.HasPrefix(w, zonesDenied(name)) }):
			t.Specs, t.Zones = "", nil
		default:
			continue
		}
		text = t.Name
		if bound {
			text += " in " + namesText(zones)
		}
		kept = append(kept, text)
	}
	if len(kept) > 0 && m.last.Topology.Value {
		m.lines = append(m.lines, "the zones of volume types stay as in the last plan ("+strings.Join(kept, "; ")+"): "+missingRight(specsRight, string(v1alpha1.Denied)))
	}
}

// rights are the access rules of the requests whose answers decide something, by fact: docs/reference/access-rules.md. Every member of a project may read
// the first three, and without them nothing is decided.
var rights = map[string]string{
	"zones.compute": "GET /v2.1/os-availability-zone of service compute",
	"zones.volume":  "GET /v3/*/os-availability-zone of service volumev3",
	"volumeTypes":   "GET /v3/*/types of service volumev3",
	defaultFact:     "GET /v3/*/types/default of service volumev3",
	snapshotFact:    "GET /v3/ of service volumev3",
	backupFact:      "GET /v3/*/backups of service volumev3",
	specsRight:      "GET /v3/*/types/*/extra_specs of service volumev3",
}

const specsRight = "extra specs"

func missingRight(name, reason string) string {
	return fmt.Sprintf("this credential may not read it (%s); the access rule is %s", cmp.Or(reason, "no reason is recorded"), rights[name])
}
