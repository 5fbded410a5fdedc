package diagnosis

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// narrowest is the smallest width of a report, in columns.
const narrowest = 60

// indent is the width of the columns of state and step.
const indent = 18

// printer keeps the first error of the writer.
type printer struct {
	out   io.Writer
	width int
	err   error
}

// Print writes a report for people, in so many columns. Commands are never wrapped, so that a person can copy them.
func Print(out io.Writer, r Report, columns int) error {
	p := &printer{out: out, width: max(columns, narrowest)}
	p.line("Claim " + r.Claim)
	p.line("")
	for _, s := range r.Steps {
		p.step(s, r.Time)
	}
	p.unseen(r.Unseen)
	p.line("")
	p.line(causeLine("Cause: ", r.Cause))
	if r.Hangs() {
		p.line("Who:   " + r.Who)
	}
	return p.err
}

func (p *printer) unseen(gaps []Gap) {
	if len(gaps) == 0 {
		return
	}
	p.line("")
	p.line("Not seen:")
	for _, g := range gaps {
		p.text("  ", g.What+": "+g.Why)
		if g.Do != "" {
			p.text("    ", "do: "+g.Do)
		}
	}
}

func causeLine(before, id string) string {
	return before + id + " (" + meaningOf(cause.ID(id)).Means + ")"
}

func (p *printer) step(s Step, now time.Time) {
	margin := strings.Repeat(" ", indent)
	p.wrapped(fmt.Sprintf("%-9s %-7s ", s.State, s.Name), margin, s.What)
	if s.Since != nil {
		p.line(fmt.Sprintf("%ssince: %s (%s)", margin, age(now.Sub(*s.Since)), s.Since.Format(time.RFC3339)))
	}
	if s.Why != "" {
		p.text(margin, "why: "+s.Why)
	}
	if len(s.Requests) > 0 {
		p.text(margin, "OpenStack requests: "+strings.Join(s.Requests, " "))
	}
	for _, do := range s.Do {
		if strings.HasPrefix(do, "$ ") {
			p.line(margin + "    " + printable.Line(do))
			continue
		}
		p.text(margin, "do: "+do)
	}
}

// text writes a wrapped text behind a margin.
func (p *printer) text(margin, text string) { p.wrapped(margin, margin, text) }

// wrapped writes a text of which others may have chosen words. Its further lines stand where no line of the report begins, so that none reads like
// one.
func (p *printer) wrapped(first, margin, text string) {
	for i, l := range wrap(printable.Line(text), p.width-len(margin)-3) {
		if i > 0 {
			first = margin + "   "
		}
		p.line(first + l)
	}
}

// table writes rows of cells below a header, and nothing if there are none.
func (p *printer) table(header string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, header)
	for _, cells := range rows {
		for i := range cells {
			cells[i] = printable.Line(cells[i])
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	if err := table.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) line(text string) {
	if _, err := fmt.Fprintln(p.out, strings.TrimRight(text, " ")); p.err == nil {
		p.err = err
	}
}

// wrap breaks a text between words, and within one that a terminal would break. It has at least one line.
func wrap(text string, width int) []string {
	lines, line := []string{}, ""
	for _, word := range strings.Fields(text) {
		for letters := []rune(word); len(letters) > width; letters = letters[width:] {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, word = append(lines, string(letters[:width])), string(letters[width:])
		}
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// listed is a list that JSON shows as [], not as null.
func listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// Counted is a number with its noun: "1 volume", "2 volumes".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
