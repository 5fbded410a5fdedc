package release

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The page about tests has a row for each stage, and every target is one of make. Nobody reads a log of a workflow that fails for a wrong name.
func TestTheWeeklyStagesAreTargetsWithARowInThePage(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Strategy    struct {
				Matrix struct {
					Include []struct {
						Stage, Targets string
						Minutes        int
					}
				}
			}
		}
	}
	content, err := os.ReadFile("../../.github/workflows/weekly.yaml")
	if err == nil {
		err = yaml.Unmarshal(content, &workflow)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" || strings.Contains(string(content), "secrets.") {
		t.Errorf("the workflow needs to read the repository, and no more: %v", workflow.Permissions)
	}
	page, err := os.ReadFile("../../docs/contributing/test.md")
	if err != nil {
		t.Fatal(err)
	}
	targets := makeTargets(t)
	stages := workflow.Jobs["stage"].Strategy.Matrix.Include
	if len(stages) < 6 {
		t.Errorf("want six stages, got %+v", stages)
	}
	for _, s := range stages {
		var words []string
		for _, target := range strings.Fields(s.Targets) {
			words = append(words, "`make "+target+"`")
			if !targets[target] {
				t.Errorf("stage %s: make has no target %s", s.Stage, target)
			}
		}
		if row := fmt.Sprintf("| `%s` | %s | %d |", s.Stage, strings.Join(words, ", "), s.Minutes); !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/contributing/test.md has no row %s", row)
		}
	}
}

// makeTargets are the targets of every file of make.
func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, pattern := range []string{"Makefile", "tools/*.mk", "test/*/*.mk", "test/*/*/*.mk"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):`).FindAllSubmatch(text, -1) {
				for _, name := range strings.Fields(string(m[1])) {
					targets[name] = true
				}
			}
		}
	}
	return targets
}
