package report

import (
	"slices"
	"strings"
	"unicode"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

type decisionGroup struct {
	Title, Caption string
	Rows           []decisionRow
	Rest           *decisionGroup // folded; its title opens it
}

type decisionRow struct {
	ID, Source, Reason string
	Text               string   // a value of several lines
	Parts              []string // any other value
	Facts              []string
}

// subjects are the titles of the groups, by the first word of an ID. Another ID is its own subject.
var subjects = map[string]string{
	"target": "Target", "driver": "Driver", "hypershift": "HyperShift", "clusterID": "Driver", "namespaces": "Driver", "images": "Images",
	"credentials": "Access to the cloud", "cloudConf": "Access to the cloud",
	"topology": "Zones", "storageClass": "Storage classes", "storageClasses": "Storage classes", "defaultClass": "Storage classes",
	"snapshotClass": "Snapshots", "snapshots": "Snapshots", "backupClass": "Snapshots", "snapshotClasses": "Snapshots", "attributesClass": "Storage classes",
	"volumeAttachLimit": "Pods", "controller": "Pods", "node": "Pods", "leases": "Pods", "attacher": "Pods", "size": "Pods", "driftCheck": "Pods", "networkPolicy": "Network",
}

// byCloud is the group of what the cloud decided. A page begins with it: the rest is the same for every cloud.
func byCloud(decisions []v1alpha1.Decision) []decisionGroup {
	g := decisionGroup{Caption: "Decisions that follow from the cloud"}
	var classes []decisionRow
	for _, d := range byPart(decisions, FromCloud) {
		if row := rowOf(d); strings.HasPrefix(d.ID, classID) {
			classes = append(classes, row) // one for each type: they would fold away what is there once
		} else {
			g.Rows = append(g.Rows, row)
		}
	}
	g.Rows = append(g.Rows, classes...)
	if len(g.Rows) == 0 {
		return nil
	}
	g.fold()
	return []decisionGroup{g}
}

func byOthers(decisions []v1alpha1.Decision) []v1alpha1.Decision {
	return slices.DeleteFunc(slices.Clone(decisions), func(d v1alpha1.Decision) bool { return Part(d) == FromCloud })
}

func rowOf(d v1alpha1.Decision) decisionRow {
	row := decisionRow{ID: d.ID, Source: d.Source, Reason: d.Reason, Facts: v1alpha1.FactTexts(d.Facts)}
	if text, ok := d.Value.(string); ok && strings.Contains(strings.TrimSpace(text), "\n") {
		row.Text = strings.TrimSpace(text)
	} else {
		row.Parts = parts(d.Value)
	}
	return row
}

// fold leaves of a group what fits on a screen. The rest can be opened.
func (g *decisionGroup) fold() {
	if len(g.Rows) <= mostRows {
		return
	}
	more := g.Rows[mostRows:]
	g.Rest = &decisionGroup{Title: "Show " + count(len(more), "more decision"), Caption: g.Caption + ", continued", Rows: more}
	g.Rows = g.Rows[:mostRows]
}

// groups keeps the order of the plan: a group stands where its first decision stands.
func groups(decisions []v1alpha1.Decision) []decisionGroup {
	var all []decisionGroup
	at := map[string]int{}
	for _, d := range decisions {
		title := subject(d.ID)
		i, found := at[title]
		if !found {
			i = len(all)
			at[title] = i
			all = append(all, decisionGroup{Title: title, Caption: "Decisions: " + title})
		}
		all[i].Rows = append(all[i].Rows, rowOf(d))
	}
	for i := range all {
		all[i].fold()
	}
	return all
}

func subject(id string) string {
	first, _, _ := strings.Cut(id, ".")
	if title := subjects[first]; title != "" {
		return title
	}
	name := []rune(split(first))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return string(name)
}
