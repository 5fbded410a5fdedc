//go:build gitops

package gitops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// server is an API server without nodes, and a Git repository that is served on loopback.
type server struct {
	*controlplane.Workdir
	git string // address of the repository
}

// controllers create what every namespace has, empty a namespace that is deleted, and delete what belongs to a deleted object.
const controllers = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller"

func start(t *testing.T) *server {
	t.Helper()
	s := &server{Workdir: controlplane.NewWorkdir(t)}
	s.Env = append(s.Env, "PATH="+filepath.Join(s.Repo, "bin/tools")+":"+cache("bin")+":"+os.Getenv("PATH"), "HOME="+s.Dir,
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
	s.Start(t, controllers)
	s.serveGit(t)
	s.playHealth(t)
	return s
}

// cache is where build.sh keeps the programs.
func cache(name string) string {
	dir := os.Getenv("GITOPS_CACHE")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache", "gitops-bed")
	}
	return filepath.Join(dir, name)
}

// serveGit serves an empty repository by Git's own program for HTTP, and clones it.
func (s *server) serveGit(t *testing.T) {
	t.Helper()
	s.run(t, "git", "init", "--quiet", "--bare", "--initial-branch=main", "git/clusters.git")
	handler := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(s.run(t, "git", "--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + s.Path("git"), "GIT_HTTP_EXPORT_ALL=1"},
	}
	front := httptest.NewServer(handler)
	t.Cleanup(front.Close)
	s.git = front.URL + "/clusters.git"
	s.run(t, "git", "clone", "--quiet", "git/clusters.git", "clusters")
}

// commit writes the bundle of a configuration into the repository, as a person or a pipeline does.
func (s *server) commit(t *testing.T, dir, spec string) {
	t.Helper()
	s.Write(t, "distribution.yaml", "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: prod}\nspec: {"+spec+"}\n")
	s.run(t, filepath.Join(s.Repo, "bin/cinder-csi-generator"), "generate", "--simulated", "--target", "vanilla", "--format", "kustomize",
		"--config", "distribution.yaml", "--output-dir", "clusters/"+dir, "--accept", "class-removed,snapshots")
	s.run(t, "git", "-C", "clusters", "add", "--all")
	s.run(t, "git", "-C", "clusters", "commit", "--quiet", "--message", "bundle: "+spec)
	s.run(t, "git", "-C", "clusters", "push", "--quiet", "origin", "HEAD:main")
}

// example is a file of examples/gitops that names this server's repository.
func (s *server) example(t *testing.T, name string) string {
	t.Helper()
	text := testfile.Read(t, filepath.Join(s.Repo, "examples/gitops", name))
	const address = "https://git.example.com/platform/clusters.git"
	if !bytes.Contains(text, []byte(address)) {
		t.Fatalf("%s does not have the address %s", name, address)
	}
	s.Write(t, "example.yaml", strings.ReplaceAll(string(text), address, s.git))
	return s.Path("example.yaml")
}

// crds installs the CustomResourceDefinitions of snapshots, as another application of the cluster would.
func (s *server) crds(t *testing.T) {
	t.Helper()
	s.run(t, "bash", "-c", `kubectl create -f <(cat "$0"/bin/crds/*snapshot*.yaml)`, s.Repo)
	s.eventually(t, time.Minute, "the API server knows VolumeSnapshotClasses", func() error { return s.quiet("kubectl", "get", "volumesnapshotclasses") })
}

// playHealth writes the status that controllers of workloads and their pods would: there are no nodes here. What it plays is the plain success.
func (s *server) playHealth(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.playOnce()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
}

func (s *server) playOnce() {
	out, _, err := s.Try("kubectl", "get", "deployments,daemonsets,poddisruptionbudgets", "--all-namespaces", "-o", "json")
	if err != nil {
		return
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Generation      int64
			}
			Spec   struct{ Replicas int }
			Status struct{ ObservedGeneration int64 }
		}
	}
	if json.Unmarshal([]byte(out), &list) != nil {
		return
	}
	for _, o := range list.Items {
		g, n := o.Metadata.Generation, o.Spec.Replicas
		if o.Status.ObservedGeneration == g {
			continue
		}
		var status string
		switch o.Kind {
		case "Deployment":
			status = fmt.Sprintf(`"replicas": %[1]d, "updatedReplicas": %[1]d, "readyReplicas": %[1]d, "availableReplicas": %[1]d, "conditions": [
{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]`, n)
		case "DaemonSet":
			status = `"currentNumberScheduled": 3, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 3, "numberAvailable": 3, "numberMisscheduled": 0`
		case "PodDisruptionBudget":
			status = `"currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1, "expectedPods": 2,
"conditions": [{"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]`
		}
		_, _, _ = s.Try("kubectl", "patch", o.Kind, o.Metadata.Name, "-n", o.Metadata.Namespace, "--subresource=status", "--type=merge", "-p",
			fmt.Sprintf(`{"status": {"observedGeneration": %d, %s}}`, g, status))
	}
}

func (s *server) quiet(command ...string) error {
	_, messages, err := s.Try(command...)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, messages)
	}
	return nil
}

func (s *server) run(t *testing.T, command ...string) string {
	t.Helper()
	out, messages, err := s.Try(command...)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, messages)
	}
	return out
}

// program runs a program until the test ends.
func (s *server) program(t *testing.T, name string, env []string, args ...string) {
	t.Helper()
	log := testenv.Value(os.Create(s.Path(filepath.Base(name) + ".log")))(t)
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, append(s.Env, env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; test/suite/gitops/build.sh builds it", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
}

// eventually waits for the state of other programs, and returns how long it took.
func (s *server) eventually(t *testing.T, within time.Duration, what string, ask func() error) time.Duration {
	t.Helper()
	took := testenv.Eventually(t, within, 500*time.Millisecond, what, ask).Round(100 * time.Millisecond)
	t.Logf("%s: after %s", what, took)
	return took
}
