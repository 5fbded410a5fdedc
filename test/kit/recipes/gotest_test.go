package recipes

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// testRun is what a call of go test asks for.
type testRun struct {
	place    string
	packages []string // directories from the top of the source tree; a last element ... is all below
	tags     []string
	names    string // the pattern of -run, -bench, -fuzz or -list
	kind     string // Test, Benchmark or Fuzz; empty: any
}

// withValue are the flags of go test whose value may be a word of its own, among those that recipes use.
var withValue = []string{
	"run", "fuzz", "bench", "list", "tags", "count", "timeout", "parallel", "p", "fuzztime", "fuzzminimizetime", "cpu", "exec", "ldflags", "shuffle", "skip",
}

// isGate says whether a package is the program that runs go test with its own arguments.
func isGate(pkg string) bool { return path.Base(pkg) == "gate" }

// testRunOf returns what a call asks for, if it runs go test by itself or by gate.
func testRunOf(c call) (testRun, bool) {
	words := c.words[1:]
	switch {
	case c.words[0] != "go" || len(words) == 0:
		return testRun{}, false
	case words[0] == "test":
		words = words[1:]
	case words[0] == "run" && len(words) > 1 && isGate(words[1]):
		words = words[2:]
		words = words[slices.Index(words, "--")+1:]
	default:
		return testRun{}, false
	}
	r := testRun{place: c.place}
	r.read(c.dir, words)
	return r, true
}

func (r *testRun) read(dir string, words []string) {
	for i := 0; i < len(words); i++ {
		name, value, whole := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		if strings.HasPrefix(words[i], "./") {
			r.packages = append(r.packages, path.Join(dir, words[i]))
			continue
		}
		if !strings.HasPrefix(words[i], "-") {
			continue // the value of a flag of the tests
		}
		if !whole && slices.Contains(withValue, name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		switch {
		case name == "race":
			r.tags = append(r.tags, name)
		case name == "tags":
			r.tags = append(r.tags, strings.Split(value, ",")...)
		case name == "list":
			r.names = value
		case name == "run" && r.kind != "Fuzz" && r.kind != "Benchmark":
			r.names, r.kind = value, "Test"
		case name == "fuzz":
			r.names, r.kind = value, "Fuzz"
		case name == "bench":
			r.names, r.kind = value, "Benchmark"
		}
	}
	if len(r.packages) == 0 {
		r.packages = []string{dir}
	}
}

// problems returns why the run would run nothing, or less than it names. The pattern must name a test in each package. Each alternative
// of the pattern must name a test in one of the packages.
func (r testRun) problems(tree *tree) []string {
	alternatives, err := alternativesOf(r.names)
	if err != nil {
		return []string{fmt.Sprintf("pattern %q: %v", r.names, err)}
	}
	var problems []string
	used := make([]bool, len(alternatives))
	for _, p := range r.packages {
		tests, err := tree.tests(p, r.tags)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		some := false
		for name, subtests := range tests {
			if r.kind != "" && !strings.HasPrefix(name, r.kind) && (r.kind != "Test" || !strings.HasPrefix(name, "Example")) {
				continue
			}
			for i, a := range alternatives {
				if a.matches(name, subtests) {
					used[i], some = true, true
				}
			}
		}
		if !some {
			problems = append(problems, fmt.Sprintf("%q names no test in ./%s with tags %q", r.names, p, strings.Join(r.tags, ",")))
		}
	}
	for i, u := range used {
		if !u && len(alternatives) > 1 {
			problems = append(problems, fmt.Sprintf("%q: the alternative %q names no test", r.names, alternatives[i].text))
		}
	}
	return problems
}

// alternative is one of the patterns between the bars of -run: a pattern for the test, and perhaps one for the subtests.
type alternative struct {
	text string
	test *regexp.Regexp
	sub  *regexp.Regexp // nil: all
}

// alternativesOf splits a pattern as package testing does: at bars, then at slashes, both outside of parentheses and brackets.
func alternativesOf(pattern string) ([]alternative, error) {
	var all []alternative
	for _, text := range splitOutside(pattern, '|') {
		levels := splitOutside(text, '/')
		test, err := regexp.Compile(levels[0])
		if err != nil {
			return nil, err
		}
		a := alternative{text: text, test: test}
		if len(levels) > 1 && levels[1] != "" {
			if a.sub, err = regexp.Compile(strings.ReplaceAll(levels[1], " ", "_")); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

func splitOutside(pattern string, at byte) []string {
	var parts []string
	start, depth := 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == at && depth == 0:
			parts, start = append(parts, pattern[start:i]), i+1
		}
	}
	return append(parts, pattern[start:])
}

func (a alternative) matches(name string, s subtests) bool {
	if !a.test.MatchString(name) {
		return false
	}
	return a.sub == nil || s.computed || slices.ContainsFunc(s.names, func(n string) bool {
		return a.sub.MatchString(strings.ReplaceAll(n, " ", "_"))
	})
}
