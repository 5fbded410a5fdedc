// Package report shows inventories and plans to people at a terminal. Pipelines take YAML or JSON; nothing here is stable.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/cinder-csi/cinder-csi/generator/printable"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// table writes rows of cells in columns; the first error of the writer is kept.
type table struct {
	w   *tabwriter.Writer
	out io.Writer
	err error
}

func newTable(out io.Writer) *table {
	return &table{w: tabwriter.NewWriter(out, 0, 8, 3, ' ', 0), out: out}
}

// head begins a new table, with its own columns.
func (t *table) head(cells ...string) {
	t.flush()
	t.row()
	t.row(cells...)
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = printable.Line(cells[i]) // every cell on one line
	}
	if _, err := fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t")); t.err == nil {
		t.err = err
	}
}

func (t *table) flush() error {
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	return t.err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

// amount writes a limit; OpenStack's -1 is none.
func amount(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// unknown says of a fact that is not known why.
func unknown(state v1alpha1.State, reason string) string {
	if reason == "" {
		return string(state)
	}
	return string(state) + " (" + reason + ")"
}

func compact(v any) string {
	if s, ok := v.(string); ok {
		return cmp.Or(strings.Join(strings.Split(strings.TrimSpace(s), "\n"), "; "), "-")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
