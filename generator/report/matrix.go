package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// mostRows is how many rows of one kind a page shows at once, about a screen; the rest can be opened.
const mostRows = 20

// matrix shows where volumes of each type can be created and attached.
type matrix struct {
	Planned bool // the rows say which StorageClass a type has
	Caption string
	Zones   []zoneColumn
	Rows    []typeRow
	Legend  []symbol
	Empty   string // why there is no row
	Notes   []string
	Rest    *matrix // folded
	Title   string  // opens a folded one
}

type zoneColumn struct {
	Name, Offers    string
	volume          string // the volume zone that serves it; empty: none
	compute, served bool
}

type typeRow struct {
	Name, Description string
	Properties        []string
	Classes           []classCell
	Cells             []cell
}

type classCell struct {
	Name, Note string
	Default    bool
}

type cell struct {
	Zone string
	symbol
}

// symbol is a shape with its meaning: neither colour nor shape alone says it.
type symbol struct{ Symbol, Text string }

// Href is the shape in the list of the page.
func (s symbol) Href() string { return "#" + s.Symbol }

var (
	bothHere    = symbol{"both", "volumes and servers"}
	volumesOnly = symbol{"volumes", "volumes, no servers"}
	serversOnly = symbol{"servers", "servers, no volumes"}
	notOffered  = symbol{"none", "type not offered"}
	notKnown    = symbol{"unknown", "not known"}
)

// matrixOf needs no plan; with one it also shows the classes, and the volume zones that serve compute zones of other names.
func matrixOf(inv v1alpha1.Inventory, plan *v1alpha1.Plan) *matrix {
	m := &matrix{Planned: plan != nil, Caption: "Volume types by availability zone", Empty: "The cloud has no volume type."}
	if inv.VolumeTypes.State != v1alpha1.Known {
		m.Empty = "The volume types are not known: " + unknown(inv.VolumeTypes.State, inv.VolumeTypes.Reason) + "."
	}
	var classes map[string][]classCell
	var zoneMap map[string]string
	if plan != nil {
		m.Caption = "Volume types and their storage classes by availability zone"
		classes, zoneMap = classesByType(*plan), plan.Config.Topology.ZoneMap
	}
	m.Zones = zoneColumns(inv.Zones, zoneMap)
	used := map[symbol]bool{}
	for _, v := range inv.VolumeTypes.Value {
		row := typeRow{Name: v.Name, Description: v.Description, Properties: properties(v, v.Name == inv.DefaultVolumeType.Value)}
		row.Classes = append(slices.Clone(classes[v.Name]), classes[v.ID]...)
		for _, zone := range m.Zones {
			s := symbolOf(v, zone)
			used[s] = true
			row.Cells = append(row.Cells, cell{zone.Name, s})
		}
		m.Rows = append(m.Rows, row)
	}
	for _, s := range []symbol{bothHere, volumesOnly, serversOnly, notOffered, notKnown} {
		if used[s] {
			m.Legend = append(m.Legend, s)
		}
	}
	for _, compute := range slices.Sorted(maps.Keys(zoneMap)) {
		m.Notes = append(m.Notes, fmt.Sprintf("Servers in compute zone %s use volumes in volume zone %s (spec.topology.zoneMap).", compute, zoneMap[compute]))
	}
	if len(m.Rows) > mostRows {
		rest := *m
		rest.Rows, rest.Caption = m.Rows[mostRows:], "More volume types"
		rest.Title = "Show " + count(len(rest.Rows), "more volume type")
		m.Rest = &rest
		m.Rows = m.Rows[:mostRows]
	}
	return m
}

func zoneColumns(z v1alpha1.Zones, zoneMap map[string]string) []zoneColumn {
	compute, volume := byName(z.Compute.Value), byName(z.Volume.Value)
	all := maps.Clone(compute)
	maps.Copy(all, volume)
	var columns []zoneColumn
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := zoneColumn{Name: name, volume: name}
		_, c.compute = compute[name]
		if served := zoneMap[name]; c.compute && served != "" {
			c.volume = served
		}
		_, c.served = volume[c.volume]
		var offers []string
		if c.compute {
			offers = append(offers, "compute"+momentary(compute[name]))
		}
		if _, here := volume[name]; here {
			offers = append(offers, "volume"+momentary(volume[name]))
		}
		c.Offers = strings.Join(offers, ", ")
		columns = append(columns, c)
	}
	return columns
}

func byName(zones []v1alpha1.Zone) map[string]v1alpha1.Zone {
	all := map[string]v1alpha1.Zone{}
	for _, zone := range zones {
		all[zone.Name] = zone
	}
	return all
}

func momentary(zone v1alpha1.Zone) string {
	if zone.Available {
		return ""
	}
	return " (unavailable now)"
}

func symbolOf(v v1alpha1.VolumeType, zone zoneColumn) symbol {
	switch {
	case !zone.served:
		return serversOnly
	case v.Specs != "":
		return notKnown
	case len(v.Zones) > 0 && !slices.Contains(v.Zones, zone.volume):
		return notOffered
	case !zone.compute:
		return volumesOnly
	}
	return bothHere
}
