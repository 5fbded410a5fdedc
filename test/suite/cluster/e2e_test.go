//go:build cluster

package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// keep leaves the bundle installed after TestEndToEnd, and the next run uses it. It is for work on a scenario.
var keep = flag.Bool("keep", false, "leave the bundle of TestEndToEnd installed, or use the one that is")

// update writes what a whole run of TestEndToEnd saw into testdata/, where the documentation takes it from.
var update = flag.Bool("update", false, "write testdata/ again")

// scenario is one promise of the project, tried on the cluster. It works in a namespace of its own, and leaves nothing behind.
type scenario struct {
	name string // as RESULTS.md has it
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

// endToEnd is the Distribution of TestEndToEnd: every feature that a scenario needs. A node cannot see how many volumes Nova lets it have, so an
// administrator says it where Nova has a limit of its own.
func (c *cluster) endToEnd(t *testing.T) string {
	t.Helper()
	if limit := c.novaLimit(t); limit > 0 {
		return endToEnd + fmt.Sprintf("  volumeAttachLimit: %d\n", limit)
	}
	return endToEnd
}

const endToEnd = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: end-to-end}
spec:
  kubernetesVersion: "1.37"
  driver: {capacity: true}
  nodeLifecycle: {startupTaint: true, drainHook: true}
  snapshots: {backup: enabled}
` + attributesClasses + `  images:
    registry: mirror.invalid
`

// attributesClasses needs Kubernetes 1.34.
const attributesClasses = `  attributesClasses:
    team-a: {metadata: {team: a}}
    to-fast: {type: fast, policy: on-demand}
`

// TestEndToEnd installs one bundle and tries one scenario after the other: `make test-cluster CASE=e2e`.
func TestEndToEnd(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	b := c.generate(t, "kustomize", c.endToEnd(t))
	b.installOnce(t)
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
	c.expectStock(t, before)
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
			c.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", atMost)
			return false
		}
	}
	return true
}

var notOfAName = regexp.MustCompile(`[^a-z0-9]+`)

// attempt runs a scenario in a namespace of its own, deletes that, and waits until its volumes are gone. It does so after a failure, too: what a
// scenario leaves would fail the next ones. With -keep the objects of a failed scenario stay. The line with the time begins with a label.
func (c *cluster) attempt(t *testing.T, s scenario, label string) {
	own := *c
	own.work = t.TempDir()
	own.namespace = strings.Trim(notOfAName.ReplaceAllString(strings.ToLower(s.name), "-"), "-")
	own.namespace = strings.Trim(own.namespace[:min(len(own.namespace), 50)], "-")
	// Cleanups run in reverse order: first the scenario gives back nodes, services and credentials, then comes the diagnosis, and last the removal.
	t.Cleanup(func() { own.removeAfterFailure(t) })
	t.Cleanup(func() { own.diagnose(t) })
	testenv.Must(t, os.Symlink(filepath.Join(c.work, "clouds.yaml"), filepath.Join(own.work, "clouds.yaml")))
	own.remove(t.Context(), t) // a failed attempt with -keep has left it
	own.makeNamespace(t)
	began := time.Now()
	s.run(t, &own)
	fmt.Printf("measured: %-9s %-62s %6.1f s\n", label, s.name, time.Since(began).Seconds())
	own.remove(t.Context(), t)
}

// remove deletes the namespace of a scenario, and waits until its volumes and snapshots are gone.
func (c *cluster) remove(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, _, err := c.try(ctx, "", "kubectl", "delete", "namespace", c.namespace, "--ignore-not-found", atMost); err != nil {
		t.Fatal(err)
	}
	if err := await(ctx, patience, func() error { return c.nothingLeft(ctx) }); err != nil {
		t.Fatalf("after %s the namespace %s is deleted, but not what belongs to it: %v", patience, c.namespace, err)
	}
}

// removeAfterFailure is for a cleanup, when the context of the test has ended.
func (c *cluster) removeAfterFailure(t *testing.T) {
	if t.Failed() && !*keep {
		c.remove(context.Background(), t)
	}
}

// nothingLeft fails while Kubernetes has a volume or a snapshot for the namespace.
func (c *cluster) nothingLeft(ctx context.Context) error {
	const of = `{range .items[*]}{.metadata.name} {.spec.claimRef.namespace}{.spec.volumeSnapshotRef.namespace}{"\n"}{end}`
	out, _, err := c.try(ctx, "", "kubectl", "get", "pv,volumesnapshotcontents", "-o", "jsonpath="+of)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == c.namespace {
			return fmt.Errorf("%s is there", fields[0])
		}
	}
	return nil
}
