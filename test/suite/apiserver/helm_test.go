//go:build apiserver

package apiserver

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
)

// TestHelmUpgradesAndGoesBackAsThePageSays changes a setting, and returns to the revision before it. Both versions of Helm must leave the
// same objects as the first installation.
func TestHelmUpgradesAndGoesBackAsThePageSays(t *testing.T) {
	s := startServer(t)
	s.Write(t, "distribution.yaml", "spec: {driver: {logLevel: 5}}\n")
	page := s.text(t, "how-to/upgrade.md")
	upgrade := helmLine(t, readme.Fenced(page, "sh"))
	_, rest, _ := strings.Cut(page, "With Helm, `helm rollback ")
	options, _, found := strings.Cut(rest, "`")
	if !found {
		t.Fatal("the page has no helm rollback")
	}
	for _, helm := range []string{"helm", "helm4"} {
		t.Run(helm, func(t *testing.T) {
			before := s.state(t)
			i := s.generate(t, filepath.Join("deploy", "cinder-csi"), "vanilla", "helm", "")
			s.helm(t, helm)
			i.follow(t, "The credentials")
			i.follow(t, "Apply, and look at what would change")
			installed := s.contents(t)
			s.run(t, "cinder-csi-generator", "generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", i.dir, "--config", "distribution.yaml")
			s.shell(t, upgrade)
			if upgraded := s.contents(t); cmp.Equal(installed, upgraded) {
				t.Error("the upgrade changed nothing")
			}
			s.shell(t, "helm rollback "+options)
			if diff := cmp.Diff(installed, s.contents(t)); diff != "" {
				t.Errorf("after the rollback (-installed +now):\n%s", diff)
			}
			i.remove(t, before)
		})
	}
}

func helmLine(t *testing.T, blocks []string) string {
	t.Helper()
	i := slices.IndexFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "helm upgrade ") })
	if i < 0 {
		t.Fatal("the page has no helm upgrade")
	}
	return blocks[i]
}

// contents are the workloads and settings of the bundle: what an upgrade changes.
func (s *server) contents(t *testing.T) []string {
	t.Helper()
	out := s.run(t, "kubectl", "get", "deployments,daemonsets,configmaps", "--all-namespaces", "--selector=app.kubernetes.io/part-of=cinder-csi", "-o",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.data}{.spec}{"\n"}{end}`)
	if !strings.Contains(out, "Deployment/cinder-csi-controller ") || !strings.Contains(out, "DaemonSet/cinder-csi-node ") {
		t.Fatalf("want the workloads of the bundle, got %q", out)
	}
	return strings.Split(out, "\n")
}
