package test_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// parameters choose a case of a target: make TARGET CASE=x makes TARGET-x.
var parameters = []string{"SUITE", "CASE", "WHAT", "PROGRAM"}

// database is what make has read, with every variable expanded. SHELL=true: no $(shell) runs anything.
var database = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("make", "-C", "..", "-pnrR", "--no-print-directory", "SHELL=true", "help")
	cmd.Env = append(cmd.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
})

// makeRecipes are the targets that each target has as prerequisites or calls with $(MAKE).
func makeRecipes(t *testing.T) map[string][]string {
	t.Helper()
	text, err := database()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, text)
	}
	called := map[string][]string{}
	for _, rule := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):((?: \S+)*)\n((?:[#\t].*\n)*)`).FindAllStringSubmatch(text, -1) {
		others := strings.Fields(rule[2])
		for _, call := range regexp.MustCompile(`\$\(MAKE\) ([^;)\n]*)`).FindAllStringSubmatch(rule[3], -1) {
			others = append(others, strings.Fields(call[1])...)
		}
		if each := regexp.MustCompile(`for \w+ in \$\((\w+)\); do `).FindStringSubmatch(rule[3]); each != nil {
			others = append(others, listed(t, each[1])...)
		}
		called[rule[1]] = append(called[rule[1]], others...)
	}
	return called
}

// goals are the targets that the words of a make command name, with their cases: test-cluster-e2e for test-cluster CASE=e2e.
func goals(recipes map[string][]string, command string) []string {
	var targets, cases []string
	for _, word := range strings.Fields(command) {
		name, value, assigns := strings.Cut(word, "=")
		switch {
		case slices.Contains(parameters, name):
			cases = append(cases, value)
		case !assigns && !strings.HasPrefix(word, "-"):
			targets = append(targets, word)
		}
	}
	var all []string
	for _, target := range targets {
		if _, chooses := recipes[target+"-list"]; !chooses || len(cases) == 0 {
			all = append(all, target)
			continue
		}
		for _, c := range cases {
			all = append(all, target+"-"+c)
		}
	}
	return all
}

func TestACommandNamesItsCases(t *testing.T) {
	recipes := map[string][]string{"test-cluster": nil, "test-cluster-list": nil, "cluster-up": nil}
	for command, want := range map[string]string{
		"cluster-up test-cluster CASE=e2e": "cluster-up test-cluster-e2e", "-s test-cluster KEEP=1": "test-cluster", "cluster-up": "cluster-up",
	} {
		if got := strings.Join(goals(recipes, command), " "); got != want {
			t.Errorf("make %s: want %s, got %s", command, want, got)
		}
	}
}

// follow adds the targets and all that they run.
func follow(recipes map[string][]string, targets []string, run map[string]bool) {
	for _, target := range targets {
		if others, is := recipes[target]; is && !run[target] {
			run[target] = true
			follow(recipes, others, run)
		}
	}
}

// What pages, pipelines and people called a target stays an answer, and no target.
func TestAnOldTargetSaysWhatReplacedIt(t *testing.T) {
	text := testfile.Text(t, "kit/old-targets.txt")
	recipes := makeRecipes(t)
	for line := range strings.Lines(text) {
		old, now, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if _, is := recipes[old]; is {
			t.Errorf("%s is a target, and kit/old-targets.txt says that it is one no more", old)
		}
		command, isMake := strings.CutPrefix(now, "make ")
		for _, goal := range goals(recipes, command) {
			if _, is := recipes[goal]; isMake && !is {
				t.Errorf("%s: %s: there is no target %s", old, now, goal)
			}
		}
	}
	if out, err := exec.Command("make", "-C", "..", "test-fast").CombinedOutput(); err == nil || !strings.Contains(string(out), "make test-fast is now: make test\n") {
		t.Errorf("make test-fast: %v\n%s", err, out)
	}
}

// Two screens: a target that is a case of another, or that only recipes call, has no line.
func TestTheHelpFitsOnTwoScreens(t *testing.T) {
	out, err := exec.Command("make", "-C", "..", "--no-print-directory", "help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if lines := strings.Count(string(out), "\n"); lines > 96 {
		t.Errorf("want at most 96 lines of help, got %d", lines)
	}
	for line := range strings.Lines(string(out)) {
		if len(line) > 140 {
			t.Errorf("want at most 140 characters, got %d: %s", len(line), line)
		}
	}
}
