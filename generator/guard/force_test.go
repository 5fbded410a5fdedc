package guard

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// By the manual, --force allows another cloud too, and nothing else that needs --accept.
func TestForceAllowsNothingThatNeedsAcceptButAnotherCloud(t *testing.T) {
	otherProject := inventory("standard", "fast")
	otherProject.Cloud.ProjectID = "q"
	zoned := inventory("standard", "fast")
	zoned.Zones.Volume.Value = []v1alpha1.Zone{{Name: "nova"}}
	const base = "{metadata: {name: c}}"
	type run struct {
		next     v1alpha1.Inventory
		spec     string
		byForce  bool
		together string // another name that the same change of the configuration needs
		hosted   string // the old configuration of a hosted cluster; else a vanilla cluster has base
	}
	same := inventory("standard", "fast")
	runs := map[string]run{
		Topology:       {next: zoned, spec: base},
		ClassRemoved:   {next: inventory("standard"), spec: base},
		ClassImmutable: {next: same, spec: "{metadata: {name: c}, spec: {storageClasses: {overrides: {fast: {reclaimPolicy: Retain}}}}}"},
		ClusterID:      {next: same, spec: "{metadata: {name: d}}"},
		DriverName:     {next: same, spec: "{metadata: {name: c}, spec: {driver: {name: x.y}}}", together: ClassImmutable},
		Namespace:      {next: same, spec: "{metadata: {name: c}, spec: {namespaces: {node: x}}}"},
		Cloud:          {next: otherProject, spec: base, byForce: true},
		Snapshots:      {next: same, spec: "{metadata: {name: c}, spec: {snapshots: {enabled: false}}}"},
		Protection:     {next: same, spec: base, hosted: "{metadata: {name: c}, spec: {driver: {protectOtherClusters: enabled}}}"},
	}
	for _, name := range Accepts {
		r, known := runs[name]
		if !known {
			t.Errorf("--accept %s has no case here", name)
			continue
		}
		was, target := base, v1alpha1.Vanilla
		if r.hosted != "" {
			was, target = r.hosted, v1alpha1.HostedControlPlane
		}
		old := read(t, decide(t, same, was, target))
		changes := compare(t, old, r.next, r.spec, target)
		left := namesOf(Refused(changes, nil, true))
		if refused := slices.Contains(left, name); refused == r.byForce {
			t.Errorf("%s: --force alone leaves refused %v; want %s among them: %v", name, left, name, !r.byForce)
		}
		if !slices.Contains(namesOf(Refused(changes, nil, false)), name) {
			t.Errorf("%s: generate refuses nothing by this name, so the case shows nothing", name)
		}
		if left := namesOf(Refused(changes, []string{name, r.together}, false)); len(left) > 0 {
			t.Errorf("%s: want nothing refused once accepted, got %v", name, left)
		}
		others := slices.DeleteFunc(slices.Clone(Accepts), func(other string) bool { return other == name })
		if left := namesOf(Refused(changes, others, false)); !slices.Contains(left, name) {
			t.Errorf("%s: want it refused although every other name is accepted, got %v", name, left)
		}
	}
}

// namesOf are the values of --accept that changes need.
func namesOf(changes []v1alpha1.Change) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Accept)
	}
	return names
}

// A pipeline reads the document, and passes each name to --accept.
func TestAReportNamesOnceWhatAllowsTheRefusals(t *testing.T) {
	old := read(t, decide(t, inventory("standard", "fast"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	old.Format = v1alpha1.Kustomize
	changes := compare(t, old, inventory("new"), "{metadata: {name: d}}", v1alpha1.Vanilla)
	r := Report(changes, Refused(changes, nil, false), nil)
	if diff := cmp.Diff([]string{ClassRemoved, ClusterID}, r.Accept); diff != "" || !r.Force || r.UpToDate || len(r.Changes) != len(changes) {
		t.Errorf("force %t, up to date %t, %d of %d changes; names (-want +got):\n%s", r.Force, r.UpToDate, len(r.Changes), len(changes), diff)
	}
	if r := Report(nil, nil, nil); r.Accept != nil || r.Force || !r.UpToDate || r.Changes == nil {
		t.Errorf("without a change: want an empty list that is up to date, got %+v", r)
	}
}
