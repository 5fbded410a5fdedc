package report

import (
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Width is the number of columns of a table when nobody says how wide the terminal is.
const Width = 80

const (
	gap       = 3  // columns between two cells
	narrowest = 40 // a table in a smaller terminal is this wide
	longWord  = 56 // longer words do not keep a column wide
	shortest  = 8  // no column becomes narrower than this
)

// table writes rows of cells in columns that fit a width. It keeps the first error of the writer.
type table struct {
	out   io.Writer
	width int
	// marked is a table with words of others in sentences. Further lines of one have a mark, so that none reads like the advice of the report.
	marked bool
	rows   [][]string
	err    error
}

func newTable(out io.Writer, columns int) *table {
	return &table{out: out, width: max(columns, narrowest)}
}

// head begins a new table, with its own columns.
func (t *table) head(cells ...string) {
	t.flush()
	t.print("\n")
	t.row(cells...)
}

// row adds a row. A line feed in a cell begins a new line of that cell.
func (t *table) row(cells ...string) {
	safe := make([]string, len(cells))
	for i, cell := range cells {
		lines := strings.Split(cell, "\n")
		for j := range lines {
			lines[j] = printable.Line(lines[j])
		}
		safe[i] = strings.Join(lines, "\n")
	}
	t.rows = append(t.rows, safe)
}

// line prints one sentence below a table, wrapped.
func (t *table) line(text string) {
	t.flush()
	for _, line := range t.wrap(printable.Line(text), t.width) {
		t.print(line + "\n")
	}
}

// hang prints a line of a list and, indented, what follows: the rest of that line, and texts of their own.
func (t *table) hang(first string, below ...string) {
	const indent = "    "
	for i, text := range append([]string{first}, below...) {
		lines := t.wrap(printable.Line(text), t.width-len(indent))
		if i == 0 && first == "" {
			continue
		}
		for j, line := range lines {
			if i > 0 || j > 0 {
				line = indent + line
			}
			t.print(line + "\n")
		}
	}
}

func (t *table) flush() error {
	widths := t.columns()
	for _, cells := range t.rows {
		wrapped := make([][]string, len(cells))
		height := 0
		for i, cell := range cells {
			wrapped[i] = t.wrap(cell, widths[i])
			height = max(height, len(wrapped[i]))
		}
		for line := range height {
			row := ""
			// A row that fits most terminals alone is not aligned.
			for _, columnsOf := range []func(string) int{printable.Columns, printable.AtMost} {
				if row != "" && printable.AtMost(row) <= t.width {
					break
				}
				row = ""
				at := 0 // where the next cell begins
				for i := range cells {
					if line < len(wrapped[i]) && wrapped[i][line] != "" {
						row += strings.Repeat(" ", at-columnsOf(row)) + wrapped[i][line]
					}
					at += widths[i] + gap
				}
			}
			t.print(row + "\n")
		}
	}
	t.rows = nil
	return t.err
}

func (t *table) print(text string) {
	if _, err := io.WriteString(t.out, text); t.err == nil {
		t.err = err
	}
}

// columns gives each column the width of its longest line. If the sum is too wide, the widest columns become narrower: first down to their
// longest word, and only then inside words.
func (t *table) columns() []int {
	var widths, least []int
	for _, cells := range t.rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			for line := range strings.SplitSeq(cell, "\n") {
				widths[i] = max(widths[i], printable.AtMost(line))
			}
			for word := range strings.FieldsSeq(cell) {
				least[i] = max(least[i], min(printable.AtMost(word), longWord))
			}
		}
	}
	sum := (len(widths) - 1) * gap
	for _, w := range widths {
		sum += w
	}
	for sum > t.width {
		if i := widest(widths, least); i >= 0 {
			widths[i]--
			sum--
		} else if i = slices.Index(least, slices.Max(least)); least[i] > shortest {
			least[i]--
		} else {
			break // so many columns fit no terminal: it breaks the lines itself
		}
	}
	return widths
}

// widest is the widest column that may become narrower, or -1.
func widest(widths, least []int) int {
	found := -1
	for i, w := range widths {
		if w > least[i] && (found < 0 || w > widths[found]) {
			found = i
		}
	}
	return found
}

// wrap breaks a text into lines of at most so many columns.
func (t *table) wrap(text string, columns int) (lines []string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		if t.marked && printable.AtMost(paragraph) > columns {
			lines = append(lines, strings.Split(printable.Folded("", paragraph, columns), "\n")...)
		} else {
			lines = append(lines, printable.Fold(paragraph, columns)...)
		}
	}
	return lines
}
