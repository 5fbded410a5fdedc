package report

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

//go:embed page
var pageFiles embed.FS

// pageTemplate escapes every text for the place where it stands: names and descriptions are chosen by others.
var pageTemplate = template.Must(template.Must(template.New("page.html.tmpl").ParseFS(pageFiles, "page/page.html.tmpl")).New("style").Parse(pageStyle()))

func pageStyle() string {
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		panic(err) // embedded
	}
	return string(style)
}

// page is what the template shows. A section that is empty is left out.
type page struct {
	Title, Lead, Target, Generator string
	Counted                        string // who decided how much
	AuthURL, Region, Project       string
	Simulated                      bool
	Sections                       []section
	Cards                          []card
	Warnings                       []string
	Matrix                         *matrix
	Quotas                         *quotaTable
	ByCloud                        []decisionGroup // at most one
	Decisions                      []decisionGroup // the others
	Services                       []serviceRow
	Gaps                           []factGap
}

type section struct{ ID, Title string }

type card struct{ Name, Value, Note string }

type serviceRow struct{ Name, Versions, Endpoint string }

// InventoryPage writes what a cloud offers as one HTML page that loads nothing and runs nothing. The same inventory gives the same bytes.
func InventoryPage(out io.Writer, inv v1alpha1.Inventory, generator string) error {
	p := pageOf(inv, nil)
	p.Title, p.Generator = "Inventory of an OpenStack cloud", generator
	p.Lead = "What this cloud offers to one project: zones, volume types, quotas and services. The generator only reads the cloud."
	p.Cards = []card{
		{Name: "Volume types", Value: thousands(len(inv.VolumeTypes.Value)), Note: strings.Join(tally(inv.VolumeTypes.Value), ", ")},
		{Name: "Default type", Value: cmp.Or(inv.DefaultVolumeType.Value, "none")},
		{Name: "Compute zones", Value: zoneCount(inv.Zones.Compute)},
		{Name: "Volume zones", Value: zoneCount(inv.Zones.Volume)},
	}
	if text := backup(inv.Backup); text != "" {
		p.Cards = append(p.Cards, card{Name: "Backup service", Value: text})
	}
	return p.write(out)
}

// PlanPage writes the decisions, and the cloud that they rest on, as one HTML page that loads nothing and runs nothing.
func PlanPage(out io.Writer, plan v1alpha1.Plan, inv v1alpha1.Inventory, warnings []string) error {
	p := pageOf(inv, &plan)
	p.Title, p.Generator, p.Target, p.Warnings = "Plan for the Cinder CSI driver", plan.Generator, string(plan.Target), warnings
	p.Lead = "What the generator decided for this cloud, why, and on which facts each decision rests."
	p.Simulated = plan.Simulated
	p.ByCloud, p.Decisions = byCloud(plan.Decisions), groups(byOthers(plan.Decisions))
	p.Counted = whoDecided(plan.Decisions)
	value := func(id string) string {
		i := slices.IndexFunc(plan.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })
		if i < 0 {
			return "none"
		}
		return phrase(plan.Decisions[i].Value)
	}
	p.Cards = []card{
		{Name: "Driver", Value: value("driver.name")},
		{Name: "Storage classes", Value: thousands(len(classesOf(plan))), Note: "of " + count(len(inv.VolumeTypes.Value), "volume type")},
		{Name: "Default class", Value: value("defaultClass")},
		{Name: "Topology", Value: map[string]string{"yes": "enabled", "no": "disabled"}[value("topology.enabled")], Note: zoneNote(inv.Zones)},
	}
	return p.write(out)
}

// pageOf is what both pages show of a cloud. Plan is nil on the page of an inventory.
func pageOf(inv v1alpha1.Inventory, plan *v1alpha1.Plan) page {
	return page{
		AuthURL: inv.Cloud.AuthURL, Region: cmp.Or(inv.Cloud.Region, "-"), Project: inv.Cloud.ProjectID, Simulated: inv.Simulated,
		Matrix: matrixOf(inv, plan), Quotas: quotaTableOf(inv), Services: serviceRows(inv.Services), Gaps: factGaps(inv),
	}
}

func (p page) write(out io.Writer) error {
	add := func(id, title string, shown bool) {
		if shown {
			p.Sections = append(p.Sections, section{id, title})
		}
	}
	add("warnings", "Warnings", len(p.Warnings) > 0)
	add("cloud-decided", "Decided by the cloud", len(p.ByCloud) > 0)
	add("types", "Zones and types", true)
	add("quotas", "Quotas", true)
	add("decisions", "Other decisions", len(p.Decisions) > 0)
	add("services", "Services", len(p.Services) > 0)
	add("gaps", "Not known", len(p.Gaps) > 0)
	// Characters that reorder a line could hide on the page what they could hide on a terminal.
	return pageTemplate.ExecuteTemplate(printable.To(out), "page.html.tmpl", p)
}

func serviceRows(fact v1alpha1.Fact[map[string]v1alpha1.Service]) []serviceRow {
	var rows []serviceRow
	for _, name := range slices.Sorted(maps.Keys(fact.Value)) {
		rows = append(rows, serviceRow{name, versions(fact.Value[name]), endpoint(fact.Value[name])})
	}
	return rows
}

func zoneCount(fact v1alpha1.Fact[[]v1alpha1.Zone]) string {
	if fact.State != v1alpha1.Known {
		return "not known"
	}
	return thousands(len(fact.Value))
}

func zoneNote(z v1alpha1.Zones) string {
	return zoneCount(z.Compute) + " compute, " + zoneCount(z.Volume) + " volume zones"
}
