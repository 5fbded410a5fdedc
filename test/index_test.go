// Package test_test holds the index of the tests, README.md, to the directories and to the targets.
package test_test

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// paragraph is an entry of the index: a directory, and the text about it.
var paragraph = regexp.MustCompile(`(?m)^- \[(\w+)\]\((\w+/\w+)\) ((?:.+\n)(?:  .+\n)*)`)

func readIndex(t *testing.T) string {
	t.Helper()
	return testfile.Text(t, "README.md")
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
	recipes := makeRecipes(t)
	for _, entry := range paragraph.FindAllStringSubmatch(readIndex(t), -1) {
		if namesTargets(t, "the paragraph about "+entry[2], recipes, entry[3]) == 0 {
			t.Errorf("the paragraph about %s names no target", entry[2])
		}
	}
}

// namesTargets wants each command of make in a text to name targets, and returns how many there are.
func namesTargets(t *testing.T, what string, recipes map[string][]string, text string) int {
	t.Helper()
	commands := regexp.MustCompile("`make ([^`]+)`").FindAllStringSubmatch(text, -1)
	for _, command := range commands {
		for _, target := range goals(recipes, command[1]) {
			if _, is := recipes[target]; !is {
				t.Errorf("%s names make %s, which is no target", what, target)
			}
		}
	}
	return len(commands)
}

// A reader believes the index: a suite whose tests run with `make test` says so, and no other does.
func TestAParagraphSaysWhetherMakeTestRunsItsTests(t *testing.T) {
	for _, entry := range paragraph.FindAllStringSubmatch(readIndex(t), -1) {
		if dir, isSuite := strings.CutPrefix(entry[2], "suite/"); isSuite {
			says := regexp.MustCompile("[Pp]art of `make test`").MatchString(strings.Join(strings.Fields(entry[3]), " "))
			if has := dir == "examples" || testsWithoutATag(t, entry[2]); has != says {
				t.Errorf("the paragraph about %s says %t about being part of `make test`, and that is %t", entry[2], says, has)
			}
		}
	}
}

// testsWithoutATag says whether `go test ./...` finds tests in a directory or below it. A module of its own is not part of that.
func testsWithoutATag(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			return fs.SkipDir
		}
		if p, err := build.ImportDir(path, 0); err == nil {
			found = found || len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// makeFiles are the texts of the Makefile and of what it includes.
func makeFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"Makefile"}
	var texts []string
	for i := 0; i < len(files); i++ {
		text := testfile.Text(t, filepath.Join("..", files[i]))
		for _, include := range regexp.MustCompile(`(?m)^include (\S+)$`).FindAllStringSubmatch(text, -1) {
			files = append(files, include[1])
		}
		texts = append(texts, text)
	}
	return texts
}

// The first table leads from a promise to the files of its tests. Every name in code is a function of one of them.
func TestEveryPromiseLeadsToATest(t *testing.T) {
	_, table, _ := strings.Cut(readIndex(t), "\n| --- |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[1:]
	if len(rows) < 5 {
		t.Fatalf("want at least 5 promises, found %d", len(rows))
	}
	recipes := makeRecipes(t)
	for _, row := range rows {
		columns := strings.Split(row, "|")
		var texts strings.Builder
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(columns[2], -1) {
			if !strings.HasSuffix(link[1], "_test.go") {
				t.Errorf("the promise%sleads to %s; want a file with tests", columns[1], link[1])
				continue
			}
			texts.WriteString(testfile.Text(t, link[1]))
		}
		named := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(columns[2], -1)
		if len(named) == 0 {
			t.Errorf("the promise%sleads to no test", columns[1])
		}
		for _, f := range named {
			if !regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?` + f[1] + `\(`).MatchString(texts.String()) {
				t.Errorf("the promise%snames %s, which is in none of its files", columns[1], f[1])
			}
		}
		if namesTargets(t, "the promise"+columns[1], recipes, columns[3]) == 0 {
			t.Errorf("the promise%snames no target", columns[1])
		}
	}
}
