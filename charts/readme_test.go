package charts_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	return testfile.Text(t, "cinder-csi/"+name)
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

// Each row has the default of its value as JSON.
func TestReadmeHasTheDefaultOfEachValue(t *testing.T) {
	values, compared := parse(t, readFile(t, "values.yaml")), 0
	for _, row := range regexp.MustCompile("(?m)^\\| ([a-zA-Z.]+) \\| [a-z]+ \\| `(.*?)` \\| ").FindAllStringSubmatch(readFile(t, "README.md"), -1) {
		var has any
		if err := json.Unmarshal([]byte(row[2]), &has); err != nil {
			t.Errorf("README.md: %s: %s: %v", row[1], row[2], err)
			continue
		}
		want := any(values)
		for key := range strings.SplitSeq(row[1], ".") {
			inner, _ := want.(map[string]any)
			want = inner[key]
		}
		wantText, err := json.Marshal(want)
		hasText, _ := json.Marshal(has)
		if compared++; err != nil || string(wantText) != string(hasText) {
			t.Errorf("README.md: %s is %s, and values.yaml has %s; run `make chart-docs`", row[1], hasText, wantText)
		}
	}
	if compared < 100 {
		t.Errorf("want the defaults of at least 100 values, compared %d", compared)
	}
}
