//go:build cluster

package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// keep leaves the bundle installed after TestEndToEnd, and the next run uses it. It is for work on a scenario.
var keep = flag.Bool("keep", false, "leave the bundle of TestEndToEnd installed, or use the one that is")

// update writes what a whole run of TestEndToEnd saw into testdata/, where the documentation takes it from.
var update = flag.Bool("update", false, "write testdata/ again")

// scenario is one promise of the project, tried on the cluster. It works in a namespace of its own, and leaves nothing behind.
type scenario struct {
	name string // as docs/explanation/e2e.md has it
	run  func(t *testing.T, c *cluster)
}

// scenarios run in this order. What ends pods of the driver comes after what needs it to be quiet, and what replaces the driver comes last.
func scenarios() []scenario {
	var all []scenario
	for _, group := range [][]scenario{storageScenarios, lifecycleScenarios, disruptionScenarios, replacementScenarios} {
		all = append(all, group...)
	}
	return all
}

// endToEnd is the Distribution of TestEndToEnd: every feature that a scenario needs.
const endToEnd = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: end-to-end}
spec:
  kubernetesVersion: "1.37"
  driver: {capacity: true}
  nodeLifecycle: {startupTaint: true, drainHook: true}
  snapshots: {backup: enabled}
  attributesClasses:
    team-a: {metadata: {team: a}}
    to-fast: {type: fast, policy: on-demand}
  images:
    registry: mirror.invalid
`

// TestEndToEnd installs one bundle and tries one scenario after the other: `make test-e2e`.
func TestEndToEnd(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	b := c.generate(t, "kustomize", endToEnd)
	if !c.installed(t) {
		c.loadImages(t, b.objects(t, "kustomize"), map[string]bool{})
		b.follow(t, "The credentials")
		b.install(t)
	}
	for _, s := range scenarios() {
		began := time.Now()
		t.Run(s.name, func(t *testing.T) { c.attempt(t, s, "e2e") })
		if slices.ContainsFunc(replacementScenarios, func(r scenario) bool { return r.name == s.name }) {
			audit.except = append(audit.except, period{began, time.Now()})
		}
	}
	granted, used := audit.check(t)
	if isWhole(flag.Lookup("test.run").Value.String()) && !t.Failed() {
		audit.checkUnused(t, granted, used)
	}
	if *keep {
		return
	}
	b.uninstall(t)
	before.compare(t, c.takeStock(t))
}

// isWhole reports whether a pattern of -run selects every scenario. Only such a run uses every right.
func isWhole(pattern string) bool {
	_, scenarios, _ := strings.Cut(pattern, "/")
	return scenarios == ""
}

// installed reports whether a run with -keep has left the bundle. What is being removed is waited for.
func (c *cluster) installed(t *testing.T) bool {
	t.Helper()
	for _, namespace := range namespaces {
		switch c.kubectl(t, "get", "namespace", "--ignore-not-found", "-o", "jsonpath={.status.phase}", namespace) {
		case "":
			return false
		case "Terminating":
			c.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", "--timeout=180s")
			return false
		}
	}
	return true
}

var notOfAName = regexp.MustCompile(`[^a-z0-9]+`)

// attempt runs a scenario in a namespace of its own, deletes that, and waits until its volumes are gone. The line with its time begins with a label.
func (c *cluster) attempt(t *testing.T, s scenario, label string) {
	own := *c
	own.work = t.TempDir()
	own.namespace = strings.Trim(notOfAName.ReplaceAllString(strings.ToLower(s.name), "-"), "-")
	own.namespace = strings.Trim(own.namespace[:min(len(own.namespace), 50)], "-")
	t.Cleanup(func() { own.diagnose(t) })
	if err := os.Symlink(filepath.Join(c.work, "clouds.yaml"), filepath.Join(own.work, "clouds.yaml")); err != nil {
		t.Fatal(err)
	}
	own.kubectl(t, "delete", "namespace", own.namespace, "--ignore-not-found", "--timeout=300s") // an attempt that failed has left it to be looked at
	own.makeNamespace(t)
	began := time.Now()
	s.run(t, &own)
	fmt.Printf("measured: %-9s %-62s %6.1f s\n", label, s.name, time.Since(began).Seconds())
	own.kubectl(t, "delete", "namespace", own.namespace, "--timeout=300s")
	eventually(t, 5*time.Minute, "every volume deleted", func() error {
		if left := own.volumes(t); len(left) > 0 {
			return fmt.Errorf("%d are there: %v", len(left), left)
		}
		return nil
	})
}
