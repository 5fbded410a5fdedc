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

// readLog finds the scenarios in the log of `make test-e2e`. A scenario prints its figures before the line with its name.
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
			figures = append(figures, strings.Join(strings.Fields(m[1]), " "))
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

const tableHead = "| scenario | what it proves | time | measured |\n| --- | --- | --- | --- |\n"

// withResults writes times and figures into the table's rows, whose first two columns are written by hand. A row that the log does not have is
// marked as not run. A scenario without a row is an error: nobody has said what it proves.
func withResults(rows string, results []result) (string, error) {
	table, known := tableHead, map[string]bool{}
	for _, row := range strings.Split(strings.TrimSpace(rows), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		name := strings.TrimSpace(cells[0])
		if name == "scenario" || strings.HasPrefix(name, "---") {
			continue
		}
		if len(cells) < 2 {
			return "", fmt.Errorf("the row %q does not say what the scenario proves", row)
		}
		known[name] = true
		took, figures := "not run", ""
		if i := slices.IndexFunc(results, func(r result) bool { return r.name == name }); i >= 0 {
			took = fmt.Sprintf("%.1f s", results[i].seconds)
			figures = strings.ReplaceAll(strings.Join(results[i].figures, "; "), "|", "/")
		}
		table += strings.TrimRight(fmt.Sprintf("| %s | %s | %s | %s", name, strings.TrimSpace(cells[1]), took, figures), " ") + " |\n"
	}
	var unknown []string
	for _, r := range results {
		if !known[r.name] {
			unknown = append(unknown, r.name)
		}
	}
	if len(unknown) > 0 {
		return "", fmt.Errorf("the page has no row for: %s", strings.Join(unknown, "; "))
	}
	return table, nil
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
