package test_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const testPage = "../docs/contributing/test.md"

// stages are the targets that each stage of .ci/run runs, with what those run in turn.
func stages(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	recipes := makeRecipes(t)
	all := map[string]map[string]bool{}
	for _, stage := range regexp.MustCompile(`(?ms)^stage_(\w+)\(\) \{(.*?)\}$`).FindAllStringSubmatch(string(text), -1) {
		run := map[string]bool{}
		for _, call := range regexp.MustCompile(`(?m)\bmake ([^;\n}]*)`).FindAllStringSubmatch(stage[2], -1) {
			follow(recipes, strings.Fields(call[1]), run)
		}
		all[stage[1]] = run
	}
	return all
}

// makeRecipes are the targets that each target has as prerequisites or calls with $(MAKE).
func makeRecipes(t *testing.T) map[string][]string {
	t.Helper()
	called := map[string][]string{}
	for _, file := range makeFiles(t) {
		for _, rule := range regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):([^=\n].*|)\n((?:\t.*\n)*)`).FindAllStringSubmatch(file, -1) {
			prerequisites, _, _ := strings.Cut(rule[2], "##")
			others := strings.Fields(prerequisites)
			for _, call := range regexp.MustCompile(`\$\(MAKE\) ([^;)\n]*)`).FindAllStringSubmatch(rule[3], -1) {
				others = append(others, strings.Fields(call[1])...)
			}
			for _, target := range strings.Fields(rule[1]) {
				called[target] = append(called[target], others...)
			}
		}
	}
	return called
}

func follow(recipes map[string][]string, targets []string, run map[string]bool) {
	for _, target := range targets {
		if others, is := recipes[target]; is && !run[target] {
			run[target] = true
			follow(recipes, others, run)
		}
	}
}

func TestThePageAboutTheTestsSaysWhatTheGateRuns(t *testing.T) {
	page, err := os.ReadFile(testPage)
	if err != nil {
		t.Fatal(err)
	}
	before, weekly, found := strings.Cut(string(page), "\n## Every week\n") // another workflow, which another test reads
	_, after, ends := strings.Cut(weekly, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no section about the weekly workflow, or nothing after it")
	}
	byStage, named, rows := stages(t), regexp.MustCompile("`make ([a-z0-9-]+)"), 0
	everywhere := map[string]bool{}
	for _, run := range byStage {
		maps.Copy(everywhere, run)
	}
	runs := func(stage, target string) bool { return byStage[stage][target] }
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*) \\|$").FindAllStringSubmatch(before+after, -1) {
		rows++
		columns := strings.Split(row[1], " | ")
		target, gate := "", columns[len(columns)-1]
		if found := named.FindStringSubmatch(columns[0]); found != nil {
			target = found[1]
		}
		whole := regexp.MustCompile("^`(\\w+)`$").FindStringSubmatch(gate)
		part := regexp.MustCompile("^a part in `(\\w+)`: `make ([a-z0-9-]+)`$").FindStringSubmatch(gate)
		switch {
		case gate == "no":
			if everywhere[target] {
				t.Errorf("%s: the page says that the gate does not run make %s, and it does", columns[0], target)
			}
		case whole != nil:
			if !runs(whole[1], target) {
				t.Errorf("%s: the stage %s of .ci/run does not run make %s", columns[0], whole[1], target)
			}
		case part != nil:
			if !runs(part[1], part[2]) || everywhere[target] {
				t.Errorf("%s: want that the stage %s of .ci/run runs make %s, and no stage make %s", columns[0], part[1], part[2], target)
			}
		default:
			t.Errorf("%s: want no, a stage, or a part in a stage; got %q", columns[0], gate)
		}
	}
	if rows < 30 {
		t.Errorf("found %d rows, want at least 30", rows)
	}
}

// proves is a target that proves or measures something.
var proves = regexp.MustCompile(`^(test|bench|fuzz)(-|$)|^(cost|demo|lint|vulncheck|release-check|e2e-.*)$`)

func TestThePageAboutTheTestsNamesEveryTargetThatProvesSomething(t *testing.T) {
	page, err := os.ReadFile(testPage)
	if err != nil {
		t.Fatal(err)
	}
	targets := makeRecipes(t)
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		if proves.MatchString(target) && !strings.HasSuffix(target, "-tools") && !strings.Contains(string(page), "`make "+target+"`") {
			t.Errorf("%s does not name make %s", testPage, target)
		}
	}
}
