package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Plan writes the decisions, each with its value, reason and facts.
func Plan(out io.Writer, p v1alpha1.Plan) error {
	t := newTable(out)
	cloud := fmt.Sprintf("%s, region %s, project %s", p.Cloud.AuthURL, cmp.Or(p.Cloud.Region, "-"), p.Cloud.ProjectID)
	if p.Simulated {
		cloud += " (simulated)"
	}
	t.row("Cloud", cloud)
	t.row("Target", string(p.Target))
	t.head("DECISION", "VALUE", "SOURCE", "REASON", "FACTS")
	for _, d := range p.Decisions {
		t.row(d.ID, value(d.Value), d.Source, d.Reason, cmp.Or(strings.Join(d.Facts, "; "), "-"))
	}
	return t.flush()
}

// widest is the most of a value that a table shows; -o yaml shows it all.
const widest = 60

func value(v any) string {
	s := []rune(compact(v))
	if len(s) > widest {
		return string(s[:widest-1]) + "…"
	}
	return string(s)
}
