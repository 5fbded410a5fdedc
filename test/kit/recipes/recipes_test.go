// Package recipes proves that no target of the Makefile runs nothing. It reads every call of go test in a recipe, as make prints it and
// as the shell understands it. The pattern must name a test in the packages of the call, built with its tags. The same holds for the
// commands in pages, in .ci/run and in the pipelines, with their variables.
package recipes

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// top is the source tree.
const top = "../../.."

func newTree(top string) *tree { return &tree{top: top, read: map[string]map[string]subtests{}} }

// check returns what is wrong with the calls: with each run of tests, and with each package that go runs, builds or vets.
func check(t *testing.T, top string, lines []line) []string {
	t.Helper()
	s := newTree(top)
	var problems []string
	ran := map[string]bool{}
	for _, c := range callsOf(t, lines) {
		ran[c.place] = true
		r, is := testRunOf(c)
		for _, p := range r.problems(s) {
			problems = append(problems, c.place+": "+p)
		}
		if is || c.words[0] != "go" {
			continue
		}
		for _, word := range c.words[1:] {
			if dir, _ := strings.CutSuffix(word, "..."); strings.HasPrefix(dir, "./") {
				if info, err := os.Stat(filepath.Join(top, c.dir, dir)); err != nil || !info.IsDir() {
					problems = append(problems, c.place+": there is no package "+word)
				}
			}
		}
	}
	for _, l := range lines {
		if runsTests.MatchString(l.text) && !ran[l.place] {
			problems = append(problems, l.place+": this check finds no call of go in: "+l.text)
		}
	}
	return problems
}

var runsTests = regexp.MustCompile(`\bgo test\b|/gate -- `)

func TestEveryTargetNamesATest(t *testing.T) {
	testenv.NotShort(t)
	targets := targetsOf(t, top)
	lines := recipe(t, top, targets...)
	runs := 0
	for _, l := range lines {
		if runsTests.MatchString(l.text) {
			runs++
		}
	}
	if len(targets) < 50 || runs < 30 {
		t.Errorf("want at least 50 targets and 30 runs of tests, found %d and %d", len(targets), runs)
	}
	for _, p := range check(t, top, lines) {
		t.Error(p)
	}
}

// inlineCode is a command in a sentence or a table of a page. A mention of go without a package is no command.
var inlineCode = regexp.MustCompile("`(make [a-z][^`]*|go [^`]* \\./[^`]*)`")

// placeholder stands in a page for the name of a test.
var placeholder = regexp.MustCompile(`(-run '?[^' ]*)\bNAME\b`)

// makeOrGo is a command in a script or in a block of a page, up to what ends it. Two blanks begin an explanation.
var makeOrGo = regexp.MustCompile(`(?:^|[;&|({]|run:|- )\s*((?:make|go)(?: ?(?:[^;&#'"\s]|'[^']*'|"[^"]*"))*)`)

// written returns the commands that pages, scripts and pipelines tell people and machines to run.
func written(t *testing.T, top string) []line {
	t.Helper()
	var lines []line
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && (base == "bin" || base == "dist" || base == "testdata" || base == ".git") {
			return fs.SkipDir
		}
		place, _ := filepath.Rel(top, name)
		script := strings.HasPrefix(place, ".") && (filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml" || base == "run")
		if entry.IsDir() || !script && filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, command := range commandsIn(string(text), script) {
			lines = append(lines, line{place, command})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// commandsIn returns the calls of make and go in a script, or in the blocks and the inline code of a page.
func commandsIn(text string, script bool) []string {
	var commands []string
	fenced := false
	for row := range strings.Lines(text) {
		if !script {
			row = placeholder.ReplaceAllString(row, "${1}.*")
			for _, found := range inlineCode.FindAllStringSubmatch(row, -1) {
				commands = append(commands, found[1])
			}
		}
		if strings.HasPrefix(strings.TrimSpace(row), "```") {
			fenced = !fenced
		} else if script || fenced || strings.HasPrefix(row, "    ") {
			for _, found := range makeOrGo.FindAllStringSubmatch(strings.TrimSpace(row), -1) {
				commands = append(commands, found[1])
			}
		}
	}
	return commands
}

func TestCommandsAreFoundInPagesAndScripts(t *testing.T) {
	page := "Run `make a B=c`, not `go test -overlay`, or `go test ./p -run NAME`.\n```sh\ncd x && make d # e\n```\n    make f   explained\nmake sense\n"
	script := "stage_x() { make g; }\n  - run: make h K='a|b'\n# make i\n"
	for text, want := range map[string]string{
		page: "make a B=c,go test ./p -run .*,make d,make f", script: "make g,make h K='a|b'",
	} {
		if got := strings.Join(commandsIn(text, text == script), ","); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func TestEveryWrittenCommandIsThere(t *testing.T) {
	targets := targetsOf(t, top)
	lines := written(t, top)
	if len(lines) < 100 {
		t.Errorf("want at least 100 commands in pages and scripts, found %d", len(lines))
	}
	checked := map[string]bool{}
	for _, c := range callsOf(t, lines) {
		if c.words[0] != "make" {
			continue
		}
		known := true
		for _, word := range c.words[1:] {
			if goal := goalOf(word); goal != "" && !slices.Contains(targets, goal) {
				t.Errorf("%s: make %s: there is no target %s", c.place, strings.Join(c.words[1:], " "), goal)
				known = false
			}
		}
		// The recipes of the targets alone are checked above.
		if goals := strings.Join(c.words[1:], " "); known && strings.Contains(goals, "=") && !checked[goals] {
			checked[goals] = true
			for _, p := range check(t, top, recipe(t, top, c.words[1:]...)) {
				t.Errorf("%s: make %s: %s", c.place, goals, p)
			}
		}
	}
	for _, p := range check(t, top, lines) {
		t.Error(p)
	}
}

// goalOf is the target that a word of a make command names; none if it is a flag or a variable.
func goalOf(word string) string {
	if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
		return ""
	}
	return word
}
