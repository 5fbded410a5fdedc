package diagnosis

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// narrowest is the smallest width of a report, in columns.
const narrowest = 40

// indent is the width of the columns of state and step.
const indent = 18

// longestCell is more than the name of a VolumeAttachment, or the names of a namespace and a claim, usually have.
const longestCell = 100

// printer keeps the first error of the writer. Tenants, nodes and the cloud choose words of what it writes. So all but commands and documents goes
// through Folded: the terminal breaks no row of it, and none begins like a row of the report.
type printer struct {
	out   io.Writer
	width int
	err   error
}

func newPrinter(out io.Writer, columns int) *printer {
	return &printer{out: out, width: max(columns, narrowest)}
}

// Print writes a report for people, in so many columns. Commands are never folded, so that a person can copy them.
func Print(out io.Writer, r Report, columns int) error {
	p := newPrinter(out, columns)
	p.line("Claim " + r.Claim)
	p.line("")
	for _, s := range r.Steps {
		p.step(s, r.Time)
	}
	p.unseen(r.Unseen)
	p.line("")
	p.line(causeLine("Cause: ", r.Cause))
	if r.Hangs() {
		p.wrapped("Who:   ", "", r.Who)
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
		p.others("  ", g.What+": "+g.Why)
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
		p.text(margin, fmt.Sprintf("since: %s (%s)", age(now.Sub(*s.Since)), s.Since.Format(time.RFC3339)))
	}
	if s.Why != "" {
		p.text(margin, "why: "+s.Why)
	}
	if len(s.Requests) > 0 {
		p.text(margin, "OpenStack requests: "+strings.Join(s.Requests, " "))
	}
	for _, do := range s.Do {
		if strings.HasPrefix(do, "$ ") {
			p.copied(margin + "    " + printable.Line(do))
			continue
		}
		p.text(margin, "do: "+do)
	}
}

// line writes a text at the margin.
func (p *printer) line(text string) { p.wrapped("", "", text) }

// text writes a text behind a margin. It begins with a word of the report.
func (p *printer) text(margin, text string) { p.wrapped(margin, margin, text) }

// reserved is how a row of a report begins. Letters that look like those of ASCII look like it too.
var reserved = regexp.MustCompile(`^(?:[#$|]|[[:^ascii:]]|\S*[[:^ascii:]]\S*:|(?:do|why|since|step|Cause|Who|Findings|Waiting|Not seen):|(?:Claim|Node|Driver|done|waiting|failed|later|unseen)\b)`)

// others is text for one that begins with a word of others.
func (p *printer) others(margin, text string) {
	text = oneLine(text)
	if reserved.MatchString(text) {
		text = printable.Mark + text
	}
	p.text(margin, text)
}

// wrapped writes a text behind its own first columns; further rows stand behind a margin.
func (p *printer) wrapped(first, margin, text string) {
	columns := p.width - max(0, len(first)-len(margin)-len(printable.Mark))
	p.copied(first + printable.Folded(margin, oneLine(text), columns))
}

// oneLine is a text as a row shows it.
func oneLine(text string) string { return strings.Join(strings.Fields(printable.Line(text)), " ") }

// table writes rows of cells below a header, and nothing if there are none. An empty line stands above a header that begins with a line feed.
func (p *printer) table(header string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	header, apart := strings.CutPrefix(header, "\n")
	if apart {
		p.line("")
	}
	rows = append([][]string{strings.Split(header, "\t")}, rows...)
	widths := make([]int, len(rows[0]))
	for i, cells := range rows {
		for j := range cells {
			if cells[j] = printable.Line(cells[j]); i > 0 && j+1 < len(cells) {
				cells[j] = cell(cells[j])
			}
			widths[j] = max(widths[j], printable.Columns(cells[j]))
		}
	}
	for _, cells := range rows {
		row := ""
		for j, text := range cells {
			row += text + strings.Repeat(" ", widths[j]+2-printable.Columns(text))
		}
		p.copied(printable.Folded("", row, p.width))
	}
}

// PrintTable writes a table, what could not be read, and a last line.
func PrintTable(out io.Writer, header string, rows [][]string, unseen []Gap, last string, columns int) error {
	p := newPrinter(out, columns)
	p.table(header, rows)
	p.unseen(unseen)
	p.line("")
	p.line(last)
	return p.err
}

// word is the form of a name, an ID, a status or a version, or of several names.
var word = regexp.MustCompile(`^\(?\w+(?:[-./,:@+~]+\w+)*\)?$`)

// cell is a text for a cell: a word as it is, and anything else in quotes. The last cell of a row is not cut: it may be a sentence, or an image.
func cell(text string) string {
	switch isWord := text == "" || word.MatchString(text); {
	case !isWord:
		return fmt.Sprintf("%.30q", text)
	case len(text) > longestCell:
		return text[:longestCell-3] + "..."
	}
	return text
}

// copied writes rows as they are: what a person copies, and what is folded already.
func (p *printer) copied(text string) {
	if _, err := fmt.Fprintln(p.out, strings.TrimRight(text, " ")); p.err == nil {
		p.err = err
	}
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
