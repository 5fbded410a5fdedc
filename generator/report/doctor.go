package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Doctor writes the findings of a check for people: one row each, with what to do.
func Doctor(out io.Writer, r *doctor.Report, columns int) error {
	t := newTable(out, columns)
	t.marked = true
	t.row("Cloud", r.Cloud)
	if r.Cluster != "" {
		t.row("Cluster", r.Cluster)
	}
	t.head("SEVERITY", "CHECK", "FINDING")
	for _, f := range r.Findings {
		t.row(string(f.Severity), f.ID, advice(f.What, f.Why, f.Do))
	}
	if len(r.NotChecked) > 0 {
		t.head("NOT CHECKED", "WHAT TO DO")
		for _, g := range r.NotChecked {
			t.row(printable.Line(g.What)+"\nbecause: "+printable.Line(g.Why), g.Do)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	t.print("\n")
	t.line(fmt.Sprintf("errors: %d, warnings: %d, ok: %d, not checked: %d", r.Count(doctor.Error), r.Count(doctor.Warning), r.Count(doctor.OK), len(r.NotChecked)))
	return t.err
}

// advice puts a finding and its advice on lines of their own; an ok finding has no advice.
func advice(what, why, do string) string {
	lines := []string{printable.Line(what)}
	if why != "" {
		lines = append(lines, "why: "+printable.Line(why))
	}
	if do != "" {
		lines = append(lines, "do: "+printable.Line(do))
	}
	return strings.Join(lines, "\n")
}
