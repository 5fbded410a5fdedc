package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// wide is the number of columns from which a plan is a table. In fewer, it is a list: a table would break names and images.
const wide = 140

// most is how many volume types or classes a table lists. A cloud with more gets a row that counts the rest: nobody reads 2,000 rows.
const most = 20

// The parts of a plan, by who decided.
const (
	FromCloud   = "cloud"
	FromConfig  = "config"
	FromDefault = "default"
)

// Parts lists the parts in the order in which a plan shows them: what the cloud decided is why there is a generator.
var Parts = []string{FromCloud, FromConfig, FromDefault}

// Part is the part that a decision belongs to.
func Part(d v1alpha1.Decision) string {
	if d.Source == "inferred" {
		return FromCloud
	}
	return d.Source
}

// byPart are the decisions in the order of Parts, else in that of the plan; only those of a part where one is given.
func byPart(decisions []v1alpha1.Decision, part string) []v1alpha1.Decision {
	decisions = slices.DeleteFunc(slices.Clone(decisions), func(d v1alpha1.Decision) bool { return part != "" && Part(d) != part })
	slices.SortStableFunc(decisions, func(a, b v1alpha1.Decision) int { return slices.Index(Parts, Part(a)) - slices.Index(Parts, Part(b)) })
	return decisions
}

func whoDecided(decisions []v1alpha1.Decision) string {
	n := map[string]int{}
	for _, d := range decisions {
		n[Part(d)]++
	}
	return fmt.Sprintf("%s: %s by the cloud, %s by the configuration, %s by default",
		count(len(decisions), "decision"), thousands(n[FromCloud]), thousands(n[FromConfig]), thousands(n[FromDefault]))
}

// Plan writes the decisions of a part, or of all, each with its value, reason and facts, in at most so many columns.
func Plan(out io.Writer, p v1alpha1.Plan, part string, columns int) error {
	t := newTable(out, columns)
	t.line(whoDecided(p.Decisions))
	p.Decisions = byPart(p.Decisions, part)
	t.row("Cloud", place(p.Cloud.AuthURL, p.Simulated))
	t.row("Region", cmp.Or(p.Cloud.Region, "-"))
	t.row("Project", p.Cloud.ProjectID)
	t.row("Target", string(p.Target))
	if t.width < wide {
		t.flush()
		t.print("\n")
		for _, d := range shorten(p.Decisions) {
			item(t, d)
		}
		return t.flush()
	}
	t.head("DECISION", "VALUE", "SOURCE", "REASON AND FACTS")
	for _, d := range shorten(p.Decisions) {
		t.row(d.ID, phrase(d.Value), d.Source, strings.TrimSuffix(d.Reason+"\n"+factLine(d), "\n"))
	}
	return t.flush()
}

// item writes one decision of a list: its value after its ID, and the rest below.
func item(t *table, d v1alpha1.Decision) {
	value := phrase(d.Value)
	if strings.Contains(value, "\n") {
		t.hang(d.ID+":", strings.Split(value, "\n")...)
	} else {
		t.hang(d.ID + ": " + value)
	}
	below := []string{strings.TrimPrefix(d.Source+": "+d.Reason, ": ")}
	if len(d.Facts) > 0 {
		below = append(below, factLine(d))
	}
	t.hang("", below...)
}

func factLine(d v1alpha1.Decision) string {
	if len(d.Facts) == 0 {
		return ""
	}
	return "facts: " + strings.Join(v1alpha1.FactTexts(d.Facts), "; ")
}

const classID = "storageClass."

// shorten replaces the classes that are too many for a table by one row that counts them. A class that the configuration changed stays.
func shorten(decisions []v1alpha1.Decision) []v1alpha1.Decision {
	classes := 0
	for _, d := range decisions {
		if strings.HasPrefix(d.ID, classID) {
			classes++
		}
	}
	if classes <= most {
		return decisions
	}
	var short []v1alpha1.Decision
	kept, left, at := 0, 0, 0
	for _, d := range decisions {
		if class := strings.HasPrefix(d.ID, classID); class && (d.Source == "inferred" && kept >= most || kept >= 5*most) {
			left++
			continue
		} else if class {
			kept++
			at = len(short) + 1
		}
		short = append(short, d)
	}
	rest := v1alpha1.Decision{
		ID: classID + "*", Value: fmt.Sprintf("%s more", thousands(left)), Source: "inferred",
		Reason: "the cloud offers their volume types; -o yaml and -o html show every class",
	}
	return append(short[:at:at], append([]v1alpha1.Decision{rest}, short[at:]...)...)
}

// place is the address of a cloud. A simulated one says so.
func place(url string, simulated bool) string {
	if simulated {
		return url + " (simulated)"
	}
	return url
}
