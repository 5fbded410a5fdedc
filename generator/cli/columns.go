package cli

import (
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/report"
)

// columns is how wide a table may be: COLUMNS if a user sets it, else the width of the terminal, else 80.
func (w *World) columns() int {
	if n, err := strconv.Atoi(w.Env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if w.Columns > 0 {
		return w.Columns
	}
	return report.Width
}
