package release

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The page about tests has a row for each stage, so that test/kit/recipes reads its targets. Nobody reads a log of a workflow that fails for a wrong name.
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
	page := testfile.Text(t, "../../test/TARGETS.md")
	stages := append(workflow.Jobs["proof"].Strategy.Matrix.Include, workflow.Jobs["stage"].Strategy.Matrix.Include...)
	if len(stages) < 12 {
		t.Errorf("want twelve stages, got %+v", stages)
	}
	for _, s := range stages {
		var words []string
		for target := range strings.SplitSeq(s.Targets, ", ") {
			words = append(words, "`make "+target+"`") // which test/kit/recipes checks
		}
		if row := fmt.Sprintf("| `%s` | %s | %d |", s.Stage, strings.ReplaceAll(strings.Join(words, ", "), "|", `\|`), s.Minutes); !strings.Contains(page, "\n"+row+"\n") {
			t.Errorf("test/TARGETS.md has no row %s", row)
		}
	}
}
