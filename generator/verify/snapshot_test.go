package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const snapshotFile = "testdata/renderings.txt"

// snapshots are the configurations whose renderings a reviewer reads. Both forms come from one chart, so comparing them shows no mistake in it. Examples are a
// wrong default and a right too many. The diff of this file does.
var snapshots = []struct {
	spec   string
	target v1alpha1.Target
}{
	{"drained nodes", v1alpha1.Vanilla},
	{"settings of driver and pods", v1alpha1.Vanilla},
	{"CA without snapshots and limits asked for again", v1alpha1.Vanilla},
	{"services for metrics without snapshots", v1alpha1.Standalone},
	{"adopt", v1alpha1.Standalone},
	{"settings of driver and pods", v1alpha1.HostedControlPlane},
}

// TestTheRenderingsAreThoseThatAReviewerHasRead holds the objects of each target's defaults by name, and what each configuration changes.
func TestTheRenderingsAreThoseThatAReviewerHasRead(t *testing.T) {
	var b strings.Builder
	defaults := map[v1alpha1.Target][]verify.Object{}
	for _, target := range targets {
		defaults[target] = build(t, decide(t, v1alpha1.Spec{}, clouds["topology on"], target), v1alpha1.Helm)
		fmt.Fprintf(&b, "== %s: the objects of the defaults\n", target)
		for _, o := range defaults[target] {
			fmt.Fprintln(&b, o)
		}
	}
	for _, s := range snapshots {
		fmt.Fprintf(&b, "\n== %s: %s\n", s.target, s.spec)
		objects := build(t, decide(t, specs()[s.spec], clouds["topology on"], s.target), v1alpha1.Helm)
		for _, line := range verify.Differences(defaults[s.target], objects, "-", "+") {
			if strings.Contains(line, "config-hash") {
				continue // of all settings
			}
			line = strings.ReplaceAll(strings.ReplaceAll(line, certificate(), "CERTIFICATE"), "\n", `\n`)
			if len(line) > 220 {
				line = line[:220] + "…"
			}
			fmt.Fprintln(&b, line)
		}
	}
	if *update {
		testfile.Write(t, snapshotFile, b.String(), 0o644)
	}
	want := testfile.Text(t, snapshotFile)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("%s: read the difference, then `make update` (-file +rendering):\n%s", snapshotFile, diff)
	}
}
