package cli

import (
	"bytes"
	"io"
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// folded folds the lines that a terminal would break. Otherwise the author of a text that a message quotes chooses the rows after the first.
type folded struct {
	out     io.Writer
	columns int
	rest    []byte // the begin of a line whose end has not been written
}

func (w *folded) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	lines := w.rest[:end]
	w.rest = w.rest[end:]
	for line := range bytes.Lines(lines) {
		text := string(bytes.TrimSuffix(line, []byte("\n")))
		if printable.AtMost(text) > w.columns {
			text = printable.Folded("", text, w.columns)
		}
		if _, err := io.WriteString(w.out, text+"\n"); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// end writes a line that has no end.
func (w *folded) end() {
	if len(w.rest) > 0 {
		_, _ = w.Write([]byte("\n"))
	}
}

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
