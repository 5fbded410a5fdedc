package partial

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// word is the outcome of a cell in one word. "ok" is the outcome on the healthy cloud, "retry" a code after which every sidecar retries.
// Otherwise the word is the final code.
func (o outcome) word() string {
	code := status.Code(o.got.worst())
	switch {
	case code == status.Code(o.healthy.worst()):
		return "ok"
	case retryable(code):
		return "retry"
	}
	return code.String()
}

// The results have their tables below the last heading of the second level.
const (
	pagePath    = "RESULTS.md"
	tablesBegin = "\n## The tables\n"
)

// write puts the tables into the page.
func (p *played) write(t *testing.T) {
	t.Helper()
	text, _ := page(t)
	testfile.Write(t, pagePath, text+tablesBegin+p.tables(), 0o644)
}

// page returns what the page says before its tables, and the tables.
func page(t *testing.T) (text, tables string) {
	t.Helper()
	whole := testfile.Text(t, pagePath)
	text, tables, found := strings.Cut(whole, tablesBegin)
	if !found {
		t.Fatalf("%s lacks %q", pagePath, tablesBegin)
	}
	return text, tables
}

// compare wants the outcomes of the page. Times and numbers of requests may differ a little: calls that run at once take turns.
func (p *played) compare(t *testing.T) {
	t.Helper()
	_, committed := page(t)
	if difference := cmp.Diff(withoutFigures(committed), withoutFigures(p.tables())); difference != "" {
		t.Errorf("the page has other outcomes (write them with -update):\n%s", difference)
	}
}

var figures = regexp.MustCompile(`(×[0-9.]+|: [0-9.msµ]+, [0-9]+ requests)`)

func withoutFigures(tables string) []string {
	return strings.Split(figures.ReplaceAllString(strings.TrimSpace(tables), ""), "\n")
}

// tables writes one table for each path through an RPC: a row for each request that the path sends, a column for each fault.
func (p *played) tables() string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| request |", s, p.healthyLine(s))
		for _, f := range faults {
			fmt.Fprintf(&b, " %s |", f.name)
		}
		b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(faults)) + "\n")
		for _, k := range p.kindsOf(s) {
			fmt.Fprintf(&b, "| `%s` |", k)
			for _, f := range faults {
				fmt.Fprintf(&b, " %s |", p.cellText(s, k, f))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}

func (p *played) healthyLine(s scenario) string {
	var parts []string
	code := codes.OK
	for _, n := range inFlight {
		for _, o := range p.cells {
			if o.scenario.String() == s.String() && o.n == n {
				parts = append(parts, fmt.Sprintf("%d in flight: %v, %d requests", n, o.healthy.took.Round(10*time.Millisecond), o.healthy.calls))
				code = status.Code(o.healthy.worst())
				break
			}
		}
	}
	line := "Healthy, " + strings.Join(parts, "; ") + "."
	if code != codes.OK {
		line += fmt.Sprintf(" The answer is %s.", code)
	}
	return line
}

func (p *played) kindsOf(s scenario) (kinds []kind) {
	for _, o := range p.cells {
		if o.scenario.String() == s.String() && !slices.Contains(kinds, o.kind) {
			kinds = append(kinds, o.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// cellText is the worst outcome of a cell over the numbers in flight, with the longest time and the most requests against the healthy run.
func (p *played) cellText(s scenario, k kind, f fault) string {
	word, longest, most := "", 0.0, 0.0
	for _, o := range p.cells {
		if o.scenario.String() != s.String() || o.kind != k || o.fault.name != f.name || o.got.hits == 0 {
			continue
		}
		if rank(o.word()) > rank(word) {
			word = o.word()
		}
		longest = max(longest, o.got.took.Seconds()/o.healthy.took.Seconds())
		most = max(most, float64(o.got.calls)/float64(o.healthy.calls))
	}
	if word == "" {
		return ""
	}
	return fmt.Sprintf("%s ×%s, ×%s", word, figure(longest), figure(most))
}

// rank orders outcomes: a final code is the worst.
func rank(word string) int {
	switch word {
	case "":
		return 0
	case "ok":
		return 1
	case "retry":
		return 2
	}
	return 3
}

func figure(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}
