// Package examples checks what people copy from examples/ with the linters and the schemas of its formats.
package examples

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

const (
	root     = "../../../examples/"
	workflow = root + "gitops/pipelines/github-actions.yaml"
	pipeline = root + "gitops/pipelines/gitlab-ci.yml"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// document is a YAML document as a JSON schema reads it.
func document(t *testing.T, text []byte) any {
	t.Helper()
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func lintWorkflow(t *testing.T, text []byte) []*actionlint.Error {
	t.Helper()
	// Without shellcheck and pyflakes, which not every machine has: make lint runs shellcheck on the script itself.
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint("workflow.yaml", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheGitHubWorkflowPassesActionlint(t *testing.T) {
	text := read(t, workflow)
	for _, name := range append(ownWorkflows(t), workflow) {
		for _, problem := range lintWorkflow(t, read(t, name)) {
			t.Errorf("%s: %v", name, problem)
		}
	}
	for name, broken := range map[string]string{
		"an unknown context": strings.Replace(string(text), "secrets.OS_APPLICATION", "secret.OS_APPLICATION", 1),
		"an unknown key":     strings.Replace(string(text), "runs-on:", "run-on:", 1),
		"a wrong schedule":   strings.Replace(string(text), "17 5 * * *", "17 25 * * *", 1),
	} {
		if len(lintWorkflow(t, []byte(broken))) == 0 {
			t.Errorf("%s: want a finding", name)
		}
	}
}

func TestTheGitLabPipelineFollowsItsSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, "testdata/gitlab-ci.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("gitlab-ci.json", schema); err != nil {
		t.Fatal(err)
	}
	check, err := compiler.Compile("gitlab-ci.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipeline, ownPipeline} {
		if err := check.Validate(document(t, read(t, name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := string(read(t, pipeline))
	for name, broken := range map[string]string{
		"an unknown key":    strings.Replace(text, "before_script:", "before-script:", 1),
		"no script":         strings.Replace(text, "\n  script:", "\n  after_script:", 1),
		"an unknown stage":  strings.Replace(text, "stage: test", "stage: tests", 1),
		"a number for text": strings.Replace(text, `GENERATOR_SHA256: "`, `GENERATOR_SHA256: 7 # "`, 1),
	} {
		var value any
		content, err := yaml.YAMLToJSON([]byte(broken))
		if err == nil {
			err = json.Unmarshal(content, &value)
		}
		if err == nil && check.Validate(value) == nil {
			t.Errorf("%s: want a finding", name)
		}
	}
}

// A merge request chooses what stands where a job writes. A link to the generator would make it empty, and an empty program succeeds.
func TestALinkInAMergeRequestCannotMoveWhatTheJobWrites(t *testing.T) {
	var jobs map[string]struct {
		Before []string `json:"before_script"`
		Script []string `json:"script"`
		After  []string `json:"after_script"`
	}
	if err := yaml.Unmarshal(read(t, pipeline), &jobs); err != nil || len(jobs) != 1 {
		t.Fatal(err, len(jobs))
	}
	for name, job := range jobs {
		dir := t.TempDir()
		victim := filepath.Join(dir, "victim")
		checkout := filepath.Join(dir, "checkout")
		for _, err := range []error{os.WriteFile(victim, []byte("whole"), 0o600), os.Mkdir(checkout, 0o700), os.Symlink(victim, filepath.Join(checkout, "changes.md"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		programs := "apt-get() { :; }; curl() { :; }; sha256sum() { :; }; chmod() { :; }; cinder-csi-generator() { echo changes; }\n"
		sh := exec.CommandContext(t.Context(), "bash", "-euc", programs+"GENERATOR=x GENERATOR_SHA256=x\n"+strings.Join(append(append(job.Before, job.Script...), job.After...), "\n"))
		sh.Dir = checkout
		out, err := sh.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "changes\n") || string(read(t, victim)) != "whole" {
			t.Errorf("%s: %v, %s, and the file behind the link is %q", name, err, out, read(t, victim))
		}
	}
}
