package docs

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	figure     = regexp.MustCompile(`\d+(?:\.\d+)?`)
	makeTarget = regexp.MustCompile("`make ([a-z0-9-]+)`")
)

// The table on the first screen of README.md says why somebody should use this driver. The section that a row links to has each of its figures,
// perhaps with more digits. Each row names the target of make that prints them.
func TestTheFiguresOfTheFirstScreenAreThoseOfTheirPages(t *testing.T) {
	const heading, rule = "\n## Why, if you have upstream's plugin\n", "| --- | --- | --- | --- |\n"
	_, section, found := strings.Cut(readPage(t, "../README.md"), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	_, rows, table := strings.Cut(section, rule)
	if !found || !table {
		t.Fatalf("README.md has no table of four columns after %q", heading)
	}
	targets := targetsOfMake(t)
	checked := 0
	for row := range strings.Lines(rows) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		link := inlineLink.FindStringSubmatch(row)
		if len(cells) != 4 || link == nil {
			t.Errorf("README.md: want four cells and a link, got %s", row)
			continue
		}
		named := makeTarget.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("README.md: no target of make prints: %s", row)
		}
		for _, target := range named {
			if !targets[target[1]] {
				t.Errorf("README.md: there is no target %s: %s", target[1], row)
			}
		}
		has := figure.FindAllString(sectionOf(t, link[1]), -1)
		for _, claimed := range figure.FindAllString(cells[1]+" "+inlineLink.ReplaceAllString(cells[2], "]"), -1) {
			checked++
			if !anyRoundsTo(has, claimed) {
				t.Errorf("README.md says %s, and %s does not: %s", claimed, link[1], row)
			}
		}
	}
	if checked < 8 {
		t.Errorf("want at least 8 figures in the table, found %d", checked)
	}
}

// anyRoundsTo reports whether a figure of a page is the claimed one, rounded to its digits.
func anyRoundsTo(figures []string, claimed string) bool {
	want, _ := strconv.ParseFloat(claimed, 64)
	_, fraction, _ := strings.Cut(claimed, ".")
	scale := math.Pow10(len(fraction))
	for _, text := range figures {
		if got, err := strconv.ParseFloat(text, 64); err == nil && math.Round(got*scale) == math.Round(want*scale) {
			return true
		}
	}
	return false
}

// sectionOf is the text below the heading that a link of README.md leads to, until the next heading of its level or above.
func sectionOf(t *testing.T, link string) string {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	var section strings.Builder
	level := 0
	for line := range strings.Lines(readPage(t, filepath.Join("..", path))) {
		if hashes := len(line) - len(strings.TrimLeft(line, "#")); hashes > 0 {
			switch {
			case level == 0 && anchorsOf(line)[0] == anchor:
				level = hashes
			case level > 0 && hashes <= level:
				return section.String()
			}
		}
		if level > 0 {
			section.WriteString(line)
		}
	}
	if level == 0 {
		t.Errorf("README.md links to %s, which has no such heading", link)
	}
	return section.String()
}

// targetsOfMake are the targets that make help lists.
func targetsOfMake(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, file := range []string{"Makefile", "test/bed/bed.mk", "test/kit/kit.mk", "test/suite/suite.mk", "tools/tools.mk"} {
		for _, rule := range regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):.*## `).FindAllStringSubmatch(readPage(t, filepath.Join("..", file)), -1) {
			for _, name := range strings.Fields(rule[1]) {
				targets[name] = true
			}
		}
	}
	return targets
}
