package main

import (
	"bufio"
	"fmt"
	"io"
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
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \r")
		if m := scenarioLine.FindStringSubmatch(line); m != nil {
			seconds, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, err
			}
			all, figures = append(all, result{m[1], seconds, figures}), nil
		} else if m := figureLine.FindStringSubmatch(line); m != nil {
			text := strings.Join(strings.Fields(m[1]), " ")
			figures = append(figures, strings.ToUpper(text[:1])+text[1:]) // a sentence of its own
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the log has no line %q", "measured: e2e NAME SECONDS s")
	}
	return all, nil
}

// scenarioRow is a line of the page's table. The first two columns are written by hand.
type scenarioRow struct{ name, proves, ours, upstream, measured string }

const tableHead = "| scenario | what it proves | time | upstream's plugin | measured |\n| --- | --- | --- | --- | --- |\n"

// parseRows reads the page's table. Missing columns are empty.
func parseRows(text string) ([]scenarioRow, error) {
	var rows []scenarioRow
	for line := range strings.Lines(strings.TrimSpace(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == "scenario" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		if len(cells) < 2 {
			return nil, fmt.Errorf("the row %q does not say what the scenario proves", line)
		}
		cells = append(cells, "", "", "")
		rows = append(rows, scenarioRow{cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	return rows, nil
}

func scenarioTable(rows []scenarioRow) string {
	text := tableHead
	for _, r := range rows {
		text += "|"
		for _, cell := range []string{r.name, r.proves, r.ours, r.upstream, r.measured} {
			text += strings.TrimRight(" "+cell, " ") + " |"
		}
		text += "\n"
	}
	return text
}

// withResults writes times and figures into the table. A row that the log does not have is marked as not run. A scenario without a row is an error:
// nobody has said what it proves.
func withResults(text string, results []result) (string, error) {
	rows, err := parseRows(text)
	if err != nil {
		return "", err
	}
	for i := range rows {
		rows[i].ours, rows[i].measured = "not run", ""
	}
	var unknown []string
	for _, r := range results {
		i := slices.IndexFunc(rows, func(row scenarioRow) bool { return row.name == r.name })
		if i < 0 {
			unknown = append(unknown, r.name)
			continue
		}
		rows[i].ours = fmt.Sprintf("%.1f s", r.seconds)
		rows[i].measured = strings.ReplaceAll(strings.Join(r.figures, ". "), "|", "/")
	}
	if len(unknown) > 0 {
		return "", fmt.Errorf("the page has no row for: %s", strings.Join(unknown, "; "))
	}
	return scenarioTable(rows), nil
}

var upstreamLine = regexp.MustCompile(`^measured: upstream {2}(.+?) +((?:\d+\.\d s|failed|not offered: .+))$`)

// withUpstream writes what the log of `make test-cluster CASE=upstream` says into its column. A row that the log does not have is marked as not run.
func withUpstream(text string, log io.Reader) (string, error) {
	rows, err := parseRows(text)
	if err != nil {
		return "", err
	}
	for i := range rows {
		rows[i].upstream = "not run"
	}
	found := 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := upstreamLine.FindStringSubmatch(strings.TrimRight(lines.Text(), " \r"))
		if m == nil {
			continue
		}
		i := slices.IndexFunc(rows, func(row scenarioRow) bool { return row.name == m[1] })
		if i < 0 {
			return "", fmt.Errorf("the page has no row for: %s", m[1])
		}
		rows[i].upstream = m[2]
		found++
	}
	if found == 0 {
		return "", fmt.Errorf("the log has no line %q", "measured: upstream NAME ...")
	}
	return scenarioTable(rows), lines.Err()
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
