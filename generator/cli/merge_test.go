package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// conflicts is the plan.yaml of both with the sums that differ from those of one branch as git leaves them.
func conflicts(both, theirs string) string {
	above, sums, _ := strings.Cut(both, "\nfiles:\n")
	_, others, _ := strings.Cut(theirs, "\nfiles:\n")
	var merged strings.Builder
	merged.WriteString(above + "\nfiles:\n")
	for line := range strings.Lines(sums) {
		if strings.Contains(others, line) {
			merged.WriteString(line)
			continue
		}
		merged.WriteString("<<<<<<< HEAD\n" + strings.Replace(line, ": ", ": 0", 1) + "=======\n" + line + ">>>>>>> branch\n")
	}
	return merged.String()
}

func TestTwoPullRequestsOnOneBundleAreSettledByTheNextRun(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	one := files(t, dir)
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
	b.ok(t, generation("vanilla", "helm", dir)...)
	both := files(t, dir)
	b.file(t, "out/plan.yaml", conflicts(both["plan.yaml"], one["plan.yaml"]))
	b.file(t, "out/README.md", "<<<<<<< HEAD\n"+both["README.md"]+"=======\n"+one["README.md"]+">>>>>>> branch\n")
	stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...)
	if code != Different || !oneLine(stdout, "handEdit: a merge left its conflict markers among the sums in plan.yaml: generate writes the files of both branches again") {
		t.Errorf("want exit 2 and one line about the merge, got %d: %q", code, stdout)
	}
	b.ok(t, generation("vanilla", "helm", dir)...)
	if diff := cmp.Diff(both, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAConflictOfDecisionsIsRefusedAndForceSaysThatTheGuardIsBlind(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	want := files(t, dir)
	b.file(t, "out/plan.yaml", strings.Replace(want["plan.yaml"], "target: vanilla\n", "<<<<<<< HEAD\ntarget: vanilla\n=======\ntarget: standalone\n>>>>>>> branch\n", 1))
	_, stderr, code := b.run(t, generation("vanilla", "helm", dir)...)
	if code != Refused || !strings.Contains(stderr, "the guard is blind") || !strings.Contains(stderr, "--force") || !strings.Contains(stderr, "git restore") {
		t.Errorf("want exit 3 that says what --force costs and what to do instead, got %d: %s", code, stderr)
	}
	if stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...); code != Different || !oneLine(stdout, "handEdit: plan.yaml holds the conflict markers of a merge") {
		t.Errorf("want exit 2 and one line, got %d: %q", code, stdout)
	}
	if _, stderr, code := b.run(t, "generate", "--os-cloud", "sim-demo", "--output-dir", dir); code != Usage || !strings.Contains(stderr, "conflict markers") {
		t.Errorf("want exit 64 without a target, and why, got %d: %s", code, stderr)
	}
	b.ok(t, generation("vanilla", "helm", dir, "--force")...)
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACheckoutWithOtherLineEndingsIsNoHandEdit(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	for name, content := range files(t, dir) {
		b.file(t, filepath.Join("out", name), strings.ReplaceAll(content, "\n", "\r\n"))
	}
	for _, args := range [][]string{generation("vanilla", "kustomize", dir, "--check"), generation("vanilla", "kustomize", dir), {"validate", dir}} {
		stdout, stderr, code := b.run(t, args...)
		if code != OK || strings.Count(stderr, "line endings") != 1 || strings.Contains(stdout+stderr, "hand") {
			t.Errorf("%s: want exit 0 and one line about line endings, got %d: %s%s", args[0], code, stdout, stderr)
		}
	}
}

func TestACheckNeedsNothingThatTheBundleKnows(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	config := b.file(t, "config.yaml", "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: prod}\n"+
		"spec: {storageClasses: {exclude: [multiattach], overrides: {fast: {reclaimPolicy: Retain}}}, networkPolicy: {enabled: true}}\n")
	b.ok(t, generation("vanilla", "kustomize", dir, "--config", config)...)
	stdout, stderr, code := b.run(t, "generate", "--os-cloud", "sim-demo", "--check", "--output-dir", dir)
	if code != OK || stdout != "" || !strings.Contains(stderr, "the configuration is that in "+filepath.Join(dir, "plan.yaml")) {
		t.Errorf("want exit 0, got %d: %s%s", code, stdout, stderr)
	}
	b.sim.SetDefaultVolumeType("fast")
	if stdout, _, code = b.run(t, "generate", "--os-cloud", "sim-demo", "--check", "--output-dir", dir); code != Different || !oneLine(stdout, "cloud: defaultVolumeType changes from standard to fast") {
		t.Errorf("want one change of the cloud, got %d: %s", code, stdout)
	}
}
