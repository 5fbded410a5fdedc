// Package test_test holds the index of the tests, README.md, to the directories and to the targets.
package test_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// paragraph is an entry of the index: a directory, and the text about it.
var paragraph = regexp.MustCompile(`(?m)^- \[(\w+)\]\((\w+/\w+)\) ((?:.+\n)(?:  .+\n)*)`)

func readIndex(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryDirectoryHasOneParagraphBelowTheHeadingOfItsKind(t *testing.T) {
	index := readIndex(t)
	var got, want []string
	for _, kind := range []string{"bed", "suite", "kit", "judge"} {
		_, section, found := strings.Cut(index, "\n## "+kind+":")
		if !found {
			t.Fatalf("README.md has no heading that begins with %q", "## "+kind+":")
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, entry := range paragraph.FindAllStringSubmatch(section+"\n", -1) {
			got = append(got, kind+"/"+entry[1])
			if entry[2] != kind+"/"+entry[1] {
				t.Errorf("the paragraph %s below %q links to %s", entry[1], kind, entry[2])
			}
		}
	}
	directories, err := filepath.Glob("*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range directories {
		if entry, err := os.Stat(path); err == nil && entry.IsDir() {
			want = append(want, path)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md and the directories differ; each directory has one paragraph (-directories +README.md):\n%s", diff)
	}
}

func TestEveryParagraphNamesATarget(t *testing.T) {
	targets := makeRecipes(t)
	for _, entry := range paragraph.FindAllStringSubmatch(readIndex(t), -1) {
		named := regexp.MustCompile("`make ([a-z0-9-]+)[^`]*`").FindAllStringSubmatch(entry[3], -1)
		if len(named) == 0 {
			t.Errorf("the paragraph about %s names no target", entry[2])
		}
		for _, target := range named {
			if _, is := targets[target[1]]; !is {
				t.Errorf("the paragraph about %s names make %s, which is no target", entry[2], target[1])
			}
		}
	}
}

// makeFiles are the texts of the Makefile and of what it includes.
func makeFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"Makefile"}
	var texts []string
	for i := 0; i < len(files); i++ {
		text, err := os.ReadFile(filepath.Join("..", files[i]))
		if err != nil {
			t.Fatal(err)
		}
		for _, include := range regexp.MustCompile(`(?m)^include (\S+)$`).FindAllStringSubmatch(string(text), -1) {
			files = append(files, include[1])
		}
		texts = append(texts, string(text))
	}
	return texts
}

// The first table leads from a promise to its tests. A row names tests and the directories that have them.
func TestEveryPromiseLeadsToATest(t *testing.T) {
	_, table, _ := strings.Cut(readIndex(t), "\n| --- |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[1:]
	if len(rows) < 5 {
		t.Fatalf("want at least 5 promises, found %d", len(rows))
	}
	targets := makeRecipes(t)
	for _, row := range rows {
		columns := strings.Split(row, "|")
		there := map[string]bool{}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(columns[2], -1) {
			maps.Copy(there, testsIn(t, link[1]))
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(columns[2], -1)
		if len(named) == 0 {
			t.Errorf("the promise%sleads to no test", columns[1])
		}
		for _, test := range named {
			if !there[test[1]] {
				t.Errorf("the promise%snames %s, which is in none of its directories", columns[1], test[1])
			}
		}
		for _, target := range regexp.MustCompile("`make ([a-z0-9-]+)`").FindAllStringSubmatch(columns[3], -1) {
			if _, is := targets[target[1]]; !is {
				t.Errorf("the promise%snames make %s, which is no target", columns[1], target[1])
			}
		}
	}
}

func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
	}
	return tests
}
