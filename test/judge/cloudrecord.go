package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

// cloudBed is the cloud of a run, as bed.json describes it.
type cloudBed struct {
	Name     string            `json:"cloud"`
	Debian   string            `json:"debian"`
	Backend  string            `json:"backend"`
	Compute  string            `json:"compute"`
	Packages map[string]string `json:"packages"` // versions of keystone, cinder-api, nova-api
}

// suiteRun is the outcome of one suite on one cloud.
type suiteRun struct {
	Date        string            `json:"date"`
	Passed      int               `json:"passed"`
	Failed      []string          `json:"failed,omitempty"`  // names of tests
	Skipped     map[string]string `json:"skipped,omitempty"` // the reason by the name of the test
	Specs       string            `json:"specs,omitempty"`   // counts that the suite printed itself, of its parts
	Seconds     int               `json:"seconds"`
	FailedSpecs map[string]string `json:"failedSpecs,omitempty"` // of upstream, with their reasons; they fail no test
}

// cloudRecord is the record of a cloud.
type cloudRecord struct {
	cloudBed
	Suites map[string]suiteRun `json:"suites"`
}

// ran says whether any test of the suite did not skip itself.
func (s suiteRun) ran() bool { return s.Passed > 0 || len(s.Failed) > 0 }

func (c cloudBed) file() string { return strings.ReplaceAll(c.where(), " ", "-") + ".json" }

// cloudRecords reads all records, the oldest release first.
func cloudRecords(dir string) ([]cloudRecord, error) {
	all, err := page.Records[cloudRecord](dir)
	slices.SortFunc(all, func(a, b cloudRecord) int {
		return cmp.Or(slices.Index(cloudOrder, a.Name)-slices.Index(cloudOrder, b.Name), strings.Compare(a.file(), b.file()))
	})
	return all, err
}

// cloudOrder are the clouds of test/bed/clouds, the oldest first.
var cloudOrder = []string{"victoria", "zed", "epoxy", "sid"}

// cloudTable is the table of all records, in Markdown, and below it the failures and skips with their reasons.
func cloudTable(records []cloudRecord) string {
	var rows [][]string
	for _, r := range records {
		cells := []string{r.title(), r.Backend + ", " + r.Compute}
		for _, name := range suiteNames() {
			cells = append(cells, r.cell(name))
		}
		rows = append(rows, cells)
	}
	text := page.Table(append([]string{"cloud", "backend, compute"}, suiteNames()...), rows)
	if notes := cloudNotes(records); notes != "" {
		text += "\n" + notes
	}
	return text
}

func suiteNames() []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	return slices.Compact(names) // those of one name stand together
}

// title names a release with the versions that Debian has.
func (c cloudBed) title() string {
	name := strings.ToUpper(c.Name[:1]) + c.Name[1:]
	if c.Name == "sid" {
		name = "Debian sid"
	}
	var parts []string
	for _, part := range []struct{ name, pkg string }{{"Keystone", "keystone"}, {"Cinder", "cinder-api"}, {"Nova", "nova-api"}} {
		if v := upstreamVersion(c.Packages[part.pkg]); v != "" {
			parts = append(parts, part.name+" "+v)
		}
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}

var debianVersion = regexp.MustCompile(`^(?:[^:]*:)?(.*?)(?:-[^-]*)?$`)

// upstreamVersion is the version of a Debian package without epoch and revision.
func upstreamVersion(version string) string {
	return debianVersion.ReplaceAllString(version, "$1")
}

// where names a cloud in a note.
func (c cloudBed) where() string { return strings.Join([]string{c.Name, c.Backend, c.Compute}, " ") }

func (r cloudRecord) cell(name string) string {
	s, ok := r.Suites[name]
	if !ok && name == "guests" && r.Compute != "libvirt" {
		return "no guests"
	}
	if !ok && r.Compute == "libvirt" && slices.Contains([]string{"conformance", theirs, "partial faults", "driver"}, name) {
		return "no disks here" // these mount file systems on the machine of the tests
	}
	if !ok {
		return "not run"
	}
	said := fmt.Sprintf("%d passed", s.Passed)
	if s.Specs != "" {
		said = s.Specs
	} else if len(s.Failed) > 0 {
		said += fmt.Sprintf(", %d failed", len(s.Failed))
	}
	if len(s.Skipped) > 0 {
		said += fmt.Sprintf(", %d skipped", len(s.Skipped))
	}
	return said
}

// cloudNotes lists every failed and every skipped test. The many specs that upstream fails have one line.
func cloudNotes(records []cloudRecord) string {
	var b strings.Builder
	for _, r := range records {
		for _, name := range suiteNames() {
			s := r.Suites[name]
			for _, test := range s.Failed {
				fmt.Fprintf(&b, "- %s, %s: `%s` failed\n", r.where(), name, test)
			}
			if n := len(s.FailedSpecs); n > 0 {
				fmt.Fprintf(&b, "- %s, %s: %d specs failed ([names and reasons](../../suite/openstack/records/%s))\n", r.where(), name, n, r.file())
			}
			byReason := map[string][]string{}
			for test, reason := range s.Skipped {
				byReason[reason] = append(byReason[reason], test)
			}
			for _, reason := range slices.Sorted(maps.Keys(byReason)) {
				fmt.Fprintf(&b, "- %s, %s: %d skipped: %s\n", r.where(), name, len(byReason[reason]), reason)
			}
		}
	}
	return b.String()
}
