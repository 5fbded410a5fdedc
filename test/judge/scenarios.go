package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is a scenario in the log.
type result struct {
	name    string
	seconds float64
	figures []string // what the scenario measured itself
}

var (
	scenarioLine = regexp.MustCompile(`^measured: e2e +(.+?) +(\d+\.\d) s$`)
	figureLine   = regexp.MustCompile(`^measured: (.+)$`)
)

// readLog finds the scenarios in the log of `make test-cluster CASE=e2e`. A scenario prints its figures before the line with its name.
func readLog(r io.Reader) ([]result, error) {
	var all []result
	var figures []string
	err := eachLine(r, func(line string) {
		if m := scenarioLine.FindStringSubmatch(line); m != nil {
			seconds, _ := strconv.ParseFloat(m[2], 64) // the expression takes nothing else
			all, figures = append(all, result{m[1], seconds, figures}), nil
		} else if m := figureLine.FindStringSubmatch(line); m != nil {
			text := strings.Join(strings.Fields(m[1]), " ")
			figures = append(figures, strings.ToUpper(text[:1])+text[1:]) // a sentence of its own
		}
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the log has no line %q", "measured: e2e NAME SECONDS s")
	}
	return all, err
}

const tableHead = "| scenario | what it proves | time | upstream's plugin | measured |\n| --- | --- | --- | --- | --- |\n"

// The columns of the page's table that a run fills. The two before them are written by hand.
const (
	oursColumn = iota + 2
	upstreamColumn
	measuredColumn
	columns
)

const notRun = "not run"

// filled is the page's table with other cells in some of the columns, by the name of the scenario. A row without cells is marked as not run in the
// first of them. A scenario without a row is an error: nobody has said what it proves.
func filled(text string, cells map[string][]string, at ...int) (string, error) {
	table := tableHead
	for line := range strings.Lines(strings.TrimPrefix(text, tableHead)) {
		row := make([]string, columns)
		if copy(row, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")) < oursColumn {
			return "", fmt.Errorf("the row %q does not say what the scenario proves", line)
		}
		name := strings.TrimSpace(row[0])
		for i, column := range at {
			row[column] = ""
			if given, ran := cells[name]; ran {
				row[column] = given[i]
			} else if i == 0 {
				row[column] = notRun
			}
		}
		delete(cells, name)
		table += "|"
		for _, cell := range row {
			table += strings.TrimRight(" "+strings.TrimSpace(cell), " ") + " |"
		}
		table += "\n"
	}
	if len(cells) > 0 {
		return "", fmt.Errorf("the page has no row for: %s", strings.Join(slices.Sorted(maps.Keys(cells)), "; "))
	}
	return table, nil
}

// withResults writes times and figures into the table.
func withResults(text string, results []result) (string, error) {
	cells := map[string][]string{}
	for _, r := range results {
		cells[r.name] = []string{fmt.Sprintf("%.1f s", r.seconds), strings.ReplaceAll(strings.Join(r.figures, ". "), "|", "/")}
	}
	return filled(text, cells, oursColumn, measuredColumn)
}

var upstreamLine = regexp.MustCompile(`^measured: upstream {2}(.+?) +((?:\d+\.\d s|failed|not offered: .+))$`)

// withUpstream writes what the log of `make test-cluster CASE=upstream` says into its column.
func withUpstream(text string, log io.Reader) (string, error) {
	cells := map[string][]string{}
	err := eachLine(log, func(line string) {
		if m := upstreamLine.FindStringSubmatch(line); m != nil {
			cells[m[1]] = m[2:]
		}
	})
	if err == nil && len(cells) == 0 {
		err = fmt.Errorf("the log has no line %q", "measured: upstream NAME ...")
	}
	if err != nil {
		return "", err
	}
	return filled(text, cells, upstreamColumn)
}

func eachLine(r io.Reader, do func(line string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		do(strings.TrimRight(lines.Text(), " \r"))
	}
	return lines.Err()
}

// summary is one sentence about the run.
func summary(results []result, when string) string {
	var seconds float64
	for _, r := range results {
		seconds += r.seconds
	}
	if when != "" {
		when = " (" + when + ")"
	}
	return fmt.Sprintf("The last run%s passed %d scenarios in %.0f minutes.\n", when, len(results), seconds/60)
}
