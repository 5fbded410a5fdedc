// Package external judges a run of Kubernetes' storage tests, "External.Storage", against the driver. Tests that cannot run are in skips.txt, each
// with its reason. Every other test must pass: a skip that the tests decide for themselves is a failure too.
package external

import (
	"fmt"
	"regexp"
	"strings"
)

// Skip is a line of skips.txt: tests that do not run, and why.
type Skip struct {
	Tests  *regexp.Regexp // of the whole name
	Reason string
}

// ParseSkips reads REGEXP<TAB>REASON, one a line. Empty lines and lines that begin with # do not count.
func ParseSkips(text string) ([]Skip, error) {
	var skips []Skip
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expression, reason, found := strings.Cut(line, "\t")
		if !found || expression == "" || reason == "" {
			return nil, fmt.Errorf("line %q is not REGEXP<TAB>REASON", line)
		}
		tests, err := regexp.Compile(expression)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		skips = append(skips, Skip{tests, reason})
	}
	return skips, nil
}

// Flag is what ginkgo's --skip gets: one expression for all lines. It is empty without lines.
func Flag(skips []Skip) string {
	var expressions []string
	for _, s := range skips {
		expressions = append(expressions, "("+s.Tests.String()+")")
	}
	return strings.Join(expressions, "|")
}
