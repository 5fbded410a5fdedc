package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("cinder-csi/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// comments are the texts that helm-docs copies into the README: a line that begins with "# -- ", and the lines after it.
func comments(values string) []string {
	var all []string
	for _, block := range regexp.MustCompile(`(?m)^ *# -- .*\n( *# [^@\n].*\n)*`).FindAllString(values, -1) {
		var words []string
		for line := range strings.Lines(block) {
			words = append(words, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "# "), "-- "))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// The render stage compares every byte with what helm-docs writes. This test needs no tools.
func TestReadmeHasTheCommentOfEachValue(t *testing.T) {
	values, readme := readFile(t, "values.yaml"), readFile(t, "README.md")
	found := comments(values)
	if len(found) < 80 {
		t.Errorf("want at least 80 comments in values.yaml, found %d", len(found))
	}
	for _, comment := range found {
		if !strings.Contains(readme, comment) {
			t.Errorf("README.md lacks %q; run `make chart-docs`", comment)
		}
	}
	var rows []string
	for _, match := range regexp.MustCompile(`(?m)^\| ([a-zA-Z.]+) \| .* \| .* \| (.*) \|$`).FindAllStringSubmatch(readme, -1) {
		if match[2] != "" {
			rows = append(rows, match[1])
		}
	}
	for _, leaf := range leaves("", parse(t, values)) {
		if !slices.ContainsFunc(rows, func(row string) bool { return leaf == row || strings.HasPrefix(leaf, row+".") }) {
			t.Errorf("README.md does not describe %s; write a comment that begins with \"# -- \" in values.yaml, and run `make chart-docs`", leaf)
		}
	}
}
