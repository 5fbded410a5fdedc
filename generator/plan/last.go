package plan

import (
	"cmp"
	"fmt"
	"maps"
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
	m := memory{facts: map[string]string{}, inv: inv}
	m.last, _, _ = Restore(last)
	for _, d := range last.Decisions {
		for _, f := range d.Facts {
			m.facts[f.Name] = f.Value
		}
	}
	m.defaultType()
	m.versions()
	m.backup()
	m.zonesOfTypes()
	return m.inv, m.lines
}

// memory is one run of Remember.
type memory struct {
	last  Result
	facts map[string]string // of the last plan, by name
	inv   v1alpha1.Inventory
	lines []string
}

// kept is the value of a fact in the last plan. False: this credential may read it, or the last plan did not know it either.
func (m *memory) kept(name string, state v1alpha1.State) (string, bool) {
	value, there := m.facts[name]
	return value, there && state == v1alpha1.Denied && value != string(v1alpha1.Denied)
}

func (m *memory) say(name, value, reason string) {
	m.lines = append(m.lines, fmt.Sprintf("%s stays as in the last plan (%s): %s", name, value, missingRight(name, reason)))
}

func (m *memory) defaultType() {
	fact := &m.inv.DefaultVolumeType
	value, kept := m.kept(defaultFact, fact.State)
	if !kept {
		return
	}
	m.say(defaultFact, value, fact.Reason)
	_, isName := findType(m.inv.VolumeTypes.Value, value)
	isName = isName && m.last.DefaultClass.Value != "" // a type may have the name "none"
	switch {
	case value == string(v1alpha1.Unsupported) && !isName:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Unsupported}
	case value == none && !isName:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Known}
	default:
		*fact = v1alpha1.Fact[string]{State: v1alpha1.Known, Value: value}
	}
}

// versions fills in a version of Cinder that gives the decision of the last plan.
func (m *memory) versions() {
	versions := m.inv.VersionsOf(blockStorage)
	value, kept := m.kept(snapshotFact, versions.State)
	if !kept || value == string(v1alpha1.Unsupported) {
		return
	}
	m.say(snapshotFact, value, versions.Reason)
	service := m.inv.Services.Value[blockStorage]
	service.Versions, service.Reason, service.MaxMicroversion = "", "", "3.0"
	if value == "true" {
		service.MaxMicroversion = snapshotInUse
	}
	m.inv.Services.Value = maps.Clone(m.inv.Services.Value)
	if m.inv.Services.Value == nil {
		m.inv.Services.Value = map[string]v1alpha1.Service{}
	}
	m.inv.Services.Value[blockStorage] = service
}

func (m *memory) backup() {
	if value, kept := m.kept(backupFact, m.inv.Backup.State); kept {
		m.say(backupFact, value, m.inv.Backup.Reason)
		m.inv.Backup.State = v1alpha1.State(value)
	}
}

// zonesOfTypes fills in the zones of each volume type whose extra specs are denied. The last plan names them where a type is bound to zones. A type
// with a class is bound to none otherwise, unless that plan did not know them either.
func (m *memory) zonesOfTypes() {
	names := map[string]string{} // at that time, by ID
	for _, c := range m.last.StorageClasses {
		names[c.Value.VolumeType.ID] = c.Value.VolumeType.Name
	}
	var kept []string
	m.inv.VolumeTypes.Value = slices.Clone(m.inv.VolumeTypes.Value)
	for i := range m.inv.VolumeTypes.Value {
		t := &m.inv.VolumeTypes.Value[i]
		if t.Specs != v1alpha1.Denied {
			continue
		}
		name, hadClass := names[t.ID]
		zones, bound := m.facts[ZonesFact(cmp.Or(name, t.Name))]
		switch {
		case slices.Contains(m.last.Warnings, zonesUnsupported):
			t.Specs = v1alpha1.Unsupported
		case bound:
			t.Specs, t.Zones = "", strings.Split(zones, ", ")
		case hadClass && m.last.Topology.Value && !slices.ContainsFunc(m.last.Warnings, func(w string) bool { return strings.HasPrefix(w, zonesDenied(name)) }):
			t.Specs = ""
		default:
			continue
		}
		kept = append(kept, t.Name)
	}
	if len(kept) > 0 && m.last.Topology.Value {
		m.lines = append(m.lines, "the zones of volume types stay as in the last plan ("+namesText(kept)+"): "+missingRight(specsRight, string(v1alpha1.Denied)))
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
