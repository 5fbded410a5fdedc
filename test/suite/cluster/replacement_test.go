//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// replacementScenarios replace the installed driver, so they run last. Each leaves the bundle of TestEndToEnd as it found it. Without a commit in
// PREVIOUS or a program in PLUGIN they are not part of the run.
var replacementScenarios = slices.Concat(
	ifSet("PREVIOUS", []scenario{{"driver upgraded from an earlier commit and rolled back", upgradeAndBack}}),
	ifSet("PLUGIN", []scenario{{"upstream's plugin replaced by this driver with volumes in use, and back", replaceUpstreamAndBack}}))

func ifSet(variable string, scenarios []scenario) []scenario {
	if os.Getenv(variable) == "" {
		return nil
	}
	return scenarios
}

// replaced runs a scenario without the bundle of TestEndToEnd, and installs that again, also after a failure: other scenarios need it.
func (c *cluster) replaced(t *testing.T, run func(t *testing.T)) {
	own := *c
	own.work = t.TempDir()
	b := own.generate(t, "kustomize", own.endToEnd(t))
	b.uninstall(t)
	defer func() {
		own.removeAnyDriver(t)
		b.follow(t, "The credentials")
		b.install(t)
	}()
	run(t)
}

// removeAnyDriver removes what a scenario may have left of a driver or a bundle.
func (c *cluster) removeAnyDriver(t *testing.T) {
	t.Helper()
	c.removeWorkloads(t, upstreamWorkloads)
	c.removeWorkloads(t, ownWorkloads)
	c.kubectl(t, "delete", "namespace", namespaces["controller"], namespaces["node"], "--ignore-not-found", atMost)
	c.kubectl(t, "delete", "clusterroles,clusterrolebindings,storageclasses,volumesnapshotclasses,volumeattributesclasses",
		"--selector=app.kubernetes.io/name=cinder-csi", "--ignore-not-found")
	c.kubectl(t, "delete", "csidriver", driverName, "--ignore-not-found")
}

// tried reports a step that a reader of the log should see, with its time.
func tried(what string, do func()) {
	began := time.Now()
	do()
	fmt.Printf("measured: %s %.1f s\n", what, time.Since(began).Seconds())
}
