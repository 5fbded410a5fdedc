package examples

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pipelines of this project.
const ownPipeline = "../../../.gitlab-ci.yml"

func ownWorkflows(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../../.github/workflows/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("want workflows, got %q and %v", names, err)
	}
	return names
}

var stageList = regexp.MustCompile(`(?:stage|STAGE): \[([a-z, ]+)\]`)

// A stage that .ci/run does not have fails in the pipeline only; one that the pipelines leave out is never run.
func TestThePipelinesRunTheStagesOfTheGate(t *testing.T) {
	all := regexp.MustCompile(`(?m)^(?:STAGES|BESIDE)="(.*)"$`).FindAllSubmatch(read(t, "../../../.ci/run"), -1)
	if len(all) != 2 {
		t.Fatal(".ci/run has no two lists of stages")
	}
	// packages runs before each stage. The others need nested virtualization or a cloud.
	notHosted := []string{"packages", "vm", "openstack"}
	var want []string
	for _, stage := range strings.FieldsFunc(string(all[0][1])+" "+string(all[1][1]), func(r rune) bool { return r == ' ' || r == '+' }) {
		if !slices.Contains(notHosted, stage) {
			want = append(want, stage)
		}
	}
	for _, name := range []string{ownPipeline, "../../../.github/workflows/checks.yaml"} {
		found := stageList.FindSubmatch(read(t, name))
		if found == nil {
			t.Errorf("%s has no list of stages", name)
		} else if got := strings.Split(string(found[1]), ", "); !slices.Equal(want, got) {
			t.Errorf("%s: want the stages %q, got %q", name, want, got)
		}
	}
}

var pinned = regexp.MustCompile(`@[0-9a-f]{40} # v`)

// A tag of an action can be moved to other code.
func TestActionsArePinnedByCommit(t *testing.T) {
	for _, name := range ownWorkflows(t) {
		for line := range strings.Lines(string(read(t, name))) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: want a commit and its version in a comment, got %s", name, strings.TrimSpace(line))
			}
		}
	}
}

// GitHub shows an issue form only if it is valid; it says so nowhere else.
func TestIssueFormsHaveWhatGitHubRequires(t *testing.T) {
	for _, name := range []string{"bug", "feature"} {
		form := document(t, read(t, "../../../.github/ISSUE_TEMPLATE/"+name+".yaml")).(map[string]any)
		for _, key := range []string{"name", "description", "body"} {
			if form[key] == nil {
				t.Errorf("%s has no %s", name, key)
			}
		}
		seen := map[any]bool{}
		for _, element := range form["body"].([]any) {
			element := element.(map[string]any)
			kind, attributes := element["type"], element["attributes"].(map[string]any)
			if kind == "markdown" {
				continue
			}
			if kind != "input" && kind != "textarea" || attributes["label"] == nil || element["id"] == nil || seen[element["id"]] {
				t.Errorf("%s: want an input or textarea with a label and an id of its own, got %v", name, element)
			}
			seen[element["id"]] = true
		}
	}
}
