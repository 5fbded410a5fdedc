package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// conflicts is the plan.yaml of one branch with the sums that the other one has otherwise as git leaves them.
func conflicts(theirs, ours string) string {
	above, sums, _ := strings.Cut(theirs, "\nfiles:\n")
	_, others, _ := strings.Cut(ours, "\nfiles:\n")
	var merged strings.Builder
	merged.WriteString(above + "\nfiles:\n")
	const last = "# sha256 of the other lines: "
	before := ""
	for line := range strings.Lines(sums) {
		if strings.Contains(others, line) {
			merged.WriteString(line)
			before = line
			continue
		}
		if strings.HasPrefix(line, last) {
			before = last
		}
		_, other, _ := strings.Cut(others, before)
		other, _, _ = strings.Cut(other, "\n")
		if before == last {
			other = last + other
		}
		merged.WriteString("<<<<<<< HEAD\n" + other + "\n=======\n" + line + ">>>>>>> branch\n")
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

func TestAMergeHidesNeitherDriftNorAnEdit(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	one := files(t, dir)
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
	b.ok(t, generation("vanilla", "helm", dir)...)
	b.file(t, "out/plan.yaml", conflicts(files(t, dir)["plan.yaml"], one["plan.yaml"]))
	edited := files(t, dir)["values.yaml"] + "# mine\n"
	b.file(t, "out/values.yaml", edited)
	b.sim.SetDefaultVolumeType("fast")
	stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...)
	for _, want := range []string{"cloud: defaultVolumeType changes from standard to fast", "handEdit: a merge left", "handEdit: values.yaml has the content of neither branch"} {
		if code != Different || !strings.Contains(stdout, want) {
			t.Errorf("want exit 2 and %q, got %d: %s", want, code, stdout)
		}
	}
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused || !strings.Contains(stderr, "git restore --source=HEAD -- values.yaml") || files(t, dir)["values.yaml"] != edited {
		t.Errorf("want exit 3, what to do, and the edit kept, got %d: %s", code, stderr)
	}
	b.ok(t, generation("vanilla", "helm", dir, "--force")...)
}

func TestAPlanWithoutItsSumDoesNotPassTheGuard(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	text, _, _ := strings.Cut(files(t, dir)["plan.yaml"], "# sha256 of the other lines")
	b.file(t, "out/plan.yaml", strings.ReplaceAll(text, "cinder.csi.openstack.org", "other.example.org"))
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused || !strings.Contains(stderr, "plan.yaml was edited by hand") {
		t.Errorf("want exit 3, got %d: %s", code, stderr)
	}
}

func TestAConflictOfDecisionsNeedsNoTargetAndEndsWithTheCodesOfTheContract(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	want := files(t, dir)
	const line = "kubernetesVersion: \"1.32\"\n"
	if !strings.Contains(want["plan.yaml"], line) {
		t.Fatal("want the version in plan.yaml")
	}
	b.file(t, "out/plan.yaml", strings.Replace(want["plan.yaml"], line, "\n<<<<<<< HEAD\n  "+line+"=======\n  "+line+">>>>>>> branch\n", 1))
	plain := []string{"generate", "--os-cloud", "sim-demo", "--output-dir", dir}
	if _, stderr, code := b.run(t, plain...); code != Refused || !strings.Contains(stderr, "both branches changed the same lines") || !strings.Contains(stderr, "drops what the other branch changed") {
		t.Errorf("want exit 3, got %d: %s", code, stderr)
	}
	if stdout, _, code := b.run(t, append(plain, "--check")...); code != Different || !oneLine(stdout, "handEdit: plan.yaml holds the conflict markers of a merge") {
		t.Errorf("want exit 2 and one line, got %d: %s", code, stdout)
	}
	saved := []string{"plan", "--os-cloud", "sim-demo", "--check", filepath.Join(dir, "plan.yaml")}
	if stdout, stderr, code := b.run(t, saved...); code != Different || !oneLine(stdout, "handEdit: plan.yaml holds the conflict markers of a merge") || !strings.Contains(stderr, "both branches changed the same lines") {
		t.Errorf("plan --check: want exit 2 and the conflict named, got %d: %s%s", code, stdout, stderr)
	}
	b.ok(t, append(plain, "--force")...)
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.file(t, "out/plan.yaml", conflicts(want["plan.yaml"], strings.Replace(want["plan.yaml"], "sha256: ", "sha256: 1", 1)))
	b.ok(t, saved...)
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
	if _, stderr, code := b.run(t, "generate", "--os-cloud", "sim-demo", "--output-dir", dir); code != Refused || !strings.Contains(stderr, "conflict markers") || !strings.Contains(stderr, "nobody can read its target") {
		t.Errorf("want exit 3 without a target, and why, got %d: %s", code, stderr)
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
