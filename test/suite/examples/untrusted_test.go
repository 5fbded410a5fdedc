package examples

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// githubJob is what decides which code of a pull request sees which secret.
type githubJob struct {
	Environment string
	Permissions map[string]string
	Steps       []struct {
		Uses, Run string
		With      map[string]any
		Env       map[string]string
	}
}

var (
	pinnedAction = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	fromRepo     = regexp.MustCompile(`(?m)(^|[;&|(]\s*|\s)(sh|bash|source|\.|python3?|make)\s+[\w./-]*\b(prod|\.)/?|(^|\s)\./`)
)

// A pull request changes files of the checkout. No step may run one of them. The job that writes a comment has neither secrets nor a checkout.
func TestTheGitHubWorkflowGivesAPullRequestNoCredentials(t *testing.T) {
	var file struct {
		Permissions map[string]string
		Jobs        map[string]githubJob
	}
	if err := yaml.Unmarshal(read(t, workflow), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Permissions) > 0 {
		t.Errorf("the workflow gives every job %v", file.Permissions)
	}
	withSecrets := 0
	for name, job := range file.Jobs {
		secret, checkout := false, false
		for _, step := range job.Steps {
			if step.Uses != "" && !pinnedAction.MatchString(step.Uses) {
				t.Errorf("%s: %s is not pinned by a commit", name, step.Uses)
			}
			if strings.HasPrefix(step.Uses, "actions/checkout@") {
				checkout = true
				if step.With["persist-credentials"] != false {
					t.Errorf("%s: the checkout keeps the token of the job", name)
				}
			}
			if fromRepo.MatchString(step.Run) {
				t.Errorf("%s runs a file of the checkout: %s", name, step.Run)
			}
			for _, value := range step.Env {
				secret = secret || strings.Contains(value, "secrets.")
			}
		}
		writes := false
		for _, right := range job.Permissions {
			writes = writes || right == "write"
		}
		if secret {
			withSecrets++
		}
		if secret && (writes || job.Environment == "") {
			t.Errorf("%s has the credential: want no right to write and an environment, got %v, %q", name, job.Permissions, job.Environment)
		}
		if writes && checkout {
			t.Errorf("%s may write, and has the files of the pull request", name)
		}
	}
	if withSecrets != 1 {
		t.Errorf("%d jobs have the credential, want one", withSecrets)
	}
}

func TestTheGitLabPipelineRunsNoFileOfAMergeRequest(t *testing.T) {
	var file map[string]struct {
		Environment  struct{ Name string }
		BeforeScript []string `json:"before_script"`
		Script       []string
		AfterScript  []string `json:"after_script"`
	}
	if err := yaml.Unmarshal(read(t, pipeline), &file); err != nil {
		t.Fatal(err)
	}
	for name, job := range file {
		for _, line := range slices.Concat(job.BeforeScript, job.Script, job.AfterScript) {
			if fromRepo.MatchString(line) {
				t.Errorf("%s runs a file of the checkout: %s", name, line)
			}
		}
		if job.Environment.Name == "" {
			t.Errorf("%s has no environment that its variables can belong to", name)
		}
	}
}

// On a new cluster the CRDs of snapshots and monitoring may come later, from another Application.
func TestArgoCDRetriesWhenACRDIsMissing(t *testing.T) {
	for _, file := range []string{"application.yaml", "applicationset.yaml", "hypershift.yaml"} {
		for _, text := range strings.Split(string(read(t, root+"gitops/argocd/"+file)), "\n---\n") {
			type spec struct {
				SyncPolicy struct {
					SyncOptions []string
					Retry       struct{ Limit int }
				}
			}
			var object struct {
				Kind string
				Spec struct {
					spec
					Template   struct{ Spec spec }
					Generators []struct {
						Git struct{ Files []struct{ Path string } }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			policy := object.Spec.SyncPolicy
			if object.Kind == "ApplicationSet" {
				policy = object.Spec.Template.Spec.SyncPolicy
				// The root of a bundle for a hosted cluster has no kustomization.yaml.
				if g := object.Spec.Generators; len(g) != 1 || len(g[0].Git.Files) != 1 || !strings.HasSuffix(g[0].Git.Files[0].Path, "/cinder-csi/kustomization.yaml") {
					t.Errorf("%s: want the bundles by their kustomization.yaml, got %+v", file, g)
				}
			}
			if policy.Retry.Limit < 10 || !slices.Contains(policy.SyncOptions, "SkipDryRunOnMissingResource=true") {
				t.Errorf("%s: want retries and SkipDryRunOnMissingResource=true, got %+v", file, policy)
			}
		}
	}
}

// A base of a bundle (--base) may be anywhere in the repository, and a change of it changes what is applied.
func TestAChangeOfABaseStartsTheCheck(t *testing.T) {
	var github struct {
		On struct { // YAML 1.1 reads the key as true
			PullRequest struct{ Paths []string } `json:"pull_request"`
		} `json:"true"`
	}
	var gitlab map[string]struct{ Rules []struct{ Changes []string } }
	for _, err := range []error{yaml.Unmarshal(read(t, workflow), &github), yaml.Unmarshal(read(t, pipeline), &gitlab)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	filters := map[string][]string{workflow: github.On.PullRequest.Paths}
	for _, job := range gitlab {
		for _, rule := range job.Rules {
			filters[pipeline] = append(filters[pipeline], rule.Changes...)
		}
	}
	for name, paths := range filters {
		for _, target := range []string{"vanilla", "standalone", "hypershift"} {
			if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, "**/"+target+"/**") }) {
				t.Errorf("%s: a base for %s starts no check: %q", name, target, paths)
			}
		}
	}
}

// A line of stderr that begins with :: would be a command to the runner.
func TestNoTextOfAPullRequestIsACommandOfTheRunner(t *testing.T) {
	var file struct{ Jobs map[string]githubJob }
	if err := yaml.Unmarshal(read(t, workflow), &file); err != nil {
		t.Fatal(err)
	}
	generates := 0
	for name, job := range file.Jobs {
		for _, step := range job.Steps {
			at := strings.Index(step.Run, " generate ")
			if at < 0 {
				continue
			}
			generates++
			stop, resume := strings.Index(step.Run, `echo "::stop-commands::$stop"`), strings.Index(step.Run, `echo "::$stop::"`)
			if stop < 0 || stop > at || resume < at {
				t.Errorf("%s: want the commands stopped around generate: %s", name, step.Run)
			}
		}
	}
	if generates != 1 {
		t.Errorf("want one step that runs generate, got %d", generates)
	}
}

// A tag of an image may be moved to another program, which would have the rights of the job.
func TestNoJobThatSignsOrPushesRunsInAnImageByItsTag(t *testing.T) {
	for _, name := range append(ownWorkflows(t), workflow) {
		var file struct {
			Jobs map[string]struct {
				Permissions any
				Container   any
			}
		}
		if err := yaml.Unmarshal(read(t, name), &file); err != nil {
			t.Fatal(err)
		}
		for id, job := range file.Jobs {
			rights, _ := job.Permissions.(map[string]any)
			container, _ := job.Container.(map[string]any)
			image, _ := container["image"].(string)
			for right, value := range rights {
				if value == "write" && job.Container != nil && !strings.Contains(image, "@sha256:") {
					t.Errorf("%s: %s has %s: write in the container %v", name, id, right, job.Container)
				}
			}
		}
	}
}
