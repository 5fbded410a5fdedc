package test_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const testPage = "TARGETS.md"

// gateStages are the targets that each stage of .ci/run runs, with what those run in turn.
func gateStages(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text := testfile.Text(t, "../.ci/run")
	recipes := makeRecipes(t)
	all := map[string]map[string]bool{}
	for _, stage := range regexp.MustCompile(`(?ms)^stage_(\w+)\(\) \{(.*?)\}$`).FindAllStringSubmatch(text, -1) {
		run := map[string]bool{}
		for _, call := range regexp.MustCompile(`(?m)\bmake ([^;\n}]*)`).FindAllStringSubmatch(stage[2], -1) {
			follow(recipes, goals(recipes, call[1]), run)
		}
		all[stage[1]] = run
	}
	return all
}

// weeklyStages are the same of .github/workflows/weekly.yaml.
func weeklyStages(t *testing.T) map[string]map[string]bool {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct {
					Include []struct{ Stage, Targets string }
				}
			}
		}
	}
	content, err := os.ReadFile("../.github/workflows/weekly.yaml")
	if err == nil {
		err = yaml.Unmarshal(content, &workflow)
	}
	if err != nil {
		t.Fatal(err)
	}
	recipes := makeRecipes(t)
	all := map[string]map[string]bool{"vulnerabilities": {"vulncheck": true}}
	for _, job := range workflow.Jobs {
		for _, stage := range job.Strategy.Matrix.Include {
			run := map[string]bool{}
			for command := range strings.SplitSeq(stage.Targets, ", ") {
				follow(recipes, goals(recipes, command), run)
			}
			all[stage.Stage] = run
		}
	}
	return all
}

// place is a cell of the last column: stages of the gate and of the week that run the target, or a part.
var place = regexp.MustCompile("^(?:(a part in )?(gate|weekly) `([\\w-]+)`(?:: `make ([^`]+)`)?|no)$")

func TestThePageAboutTheTestsSaysWhereEachTargetRuns(t *testing.T) {
	page := testfile.Read(t, testPage)
	before, weekly, found := strings.Cut(string(page), "\n## Every week\n") // its table has other columns
	_, after, ends := strings.Cut(weekly, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no section about the weekly workflow, or nothing after it")
	}
	recipes, rows := makeRecipes(t), 0
	stages := map[string]map[string]map[string]bool{"gate": gateStages(t), "weekly": weeklyStages(t)}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*) \\|$").FindAllStringSubmatch(before+after, -1) {
		rows++
		columns := strings.Split(row[1], " | ")
		var target []string
		if named := regexp.MustCompile("`make ([^`]+)").FindStringSubmatch(columns[0]); named != nil {
			target = goals(recipes, named[1])
		}
		said := map[string]bool{}
		for cell := range strings.SplitSeq(columns[len(columns)-1], "; ") {
			p := place.FindStringSubmatch(cell)
			if p == nil {
				t.Errorf("%s: want no, or stages such as gate `lint`; got %q", columns[0], cell)
				continue
			}
			part, workflow, stage := p[1] != "", p[2], p[3]
			said[workflow] = !part
			runs := stages[workflow][stage]
			if part && !runsAll(runs, goals(recipes, p[4])) || !part && workflow != "" && !runsAll(runs, target) {
				t.Errorf("%s: the stage %s of the workflow %s does not run it, or not that part", columns[0], stage, workflow)
			}
		}
		for workflow, all := range stages {
			for stage, runs := range all {
				if len(target) > 0 && runsAll(runs, target) && !said[workflow] {
					t.Errorf("%s: the page does not say that the stage %s of the workflow %s runs it", columns[0], stage, workflow)
				}
			}
		}
	}
	if rows < 30 {
		t.Errorf("found %d rows, want at least 30", rows)
	}
}

func runsAll(runs map[string]bool, targets []string) bool {
	return !slices.ContainsFunc(targets, func(target string) bool { return !runs[target] })
}

// proves is a target that proves or measures something.
var proves = regexp.MustCompile(`^(test|fuzz|measure)(-|$)|^(demo|lint|vulncheck|release-check)$`)

func TestThePageAboutTheTestsNamesEveryTargetThatProvesSomething(t *testing.T) {
	page := testfile.Text(t, testPage)
	recipes, named := makeRecipes(t), map[string]bool{}
	for _, command := range regexp.MustCompile("`make ([^`]+)`").FindAllStringSubmatch(page, -1) {
		for _, target := range goals(recipes, command[1]) {
			named[target] = true
			if _, chooses := recipes[target+"-list"]; chooses {
				for _, standard := range recipes[target] {
					named[standard] = true
				}
			}
		}
		for _, word := range strings.Fields(command[1]) {
			named[word] = true
		}
	}
	for _, target := range slices.Sorted(maps.Keys(recipes)) {
		_, chooses := recipes[target+"-list"]
		helper := chooses || strings.HasSuffix(target, "-tools") || strings.HasSuffix(target, "-list")
		if proves.MatchString(target) && !helper && !named[target] {
			t.Errorf("%s does not name make %s", testPage, target)
		}
	}
}
