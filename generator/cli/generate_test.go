package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// generation is the command line of one bundle.
func generation(target, format, dir string, more ...string) []string {
	return append([]string{"generate", "--os-cloud", "sim-demo", "--target", target, "--format", format, "--output-dir", dir}, more...)
}

func TestSixBundlesAreWrittenCheckedAndTheSameForEveryUser(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	for _, target := range targets {
		for _, format := range formats {
			dir := filepath.Join(b.dir, target+"-"+format)
			if out := b.ok(t, generation(target, format, dir)...); out != "" {
				t.Errorf("%s %s: want no data on stdout, got %q", target, format, out)
			}
			want := files(t, dir)
			if want["plan.yaml"] == "" || want["README.md"] == "" {
				t.Fatalf("%s %s: want plan.yaml and README.md, got %d files", target, format, len(want))
			}
			b.ok(t, "validate", dir)
			b.ok(t, generation(target, format, dir, "--check")...)
			b.ok(t, generation(target, format, dir)...)
			if diff := cmp.Diff(want, files(t, dir)); diff != "" {
				t.Errorf("%s %s: a second run differs (-first +second):\n%s", target, format, diff)
			}
			for i, user := range []string{"sim-demo-admin", "sim-reader", "sim-appcred"} {
				if i > 0 && format == "kustomize" {
					continue // the plans are the same, as another test shows, and building the overlay takes a second
				}
				other := filepath.Join(b.dir, user+"-"+target+"-"+format)
				args := generation(target, format, other)
				args[2] = user
				b.ok(t, args...)
				if diff := cmp.Diff(want, files(t, other)); diff != "" {
					t.Errorf("%s %s: %s differs (-sim-demo +%s):\n%s", target, format, user, user, diff)
				}
			}
		}
	}
}

func TestCheckFindsATypeAddedToTheCloudAndWritesNothing(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	before := files(t, dir)
	b.sim.AddVolumeType(openstacksim.VolumeType{Name: "brand-new"})
	stdout, stderr, code := b.run(t, generation("vanilla", "helm", dir, "--check", "--diff")...)
	if code != Different {
		t.Fatalf("want exit 2, got %d: %s", code, stderr)
	}
	for _, line := range []string{"cloud: volume type \"brand-new\" is new: StorageClass brand-new is added\n", "+++ b/values.yaml\n"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("want %q on stdout, got:\n%s", line, stdout)
		}
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("a check wrote (-before +after):\n%s", diff)
	}
	b.ok(t, generation("vanilla", "helm", dir)...)
	b.ok(t, generation("vanilla", "helm", dir, "--check")...)
}

func oneLine(stdout, begin string) bool {
	return strings.HasPrefix(stdout, begin) && strings.Count(stdout, "\n") == 1
}

func TestDiffImpliesCheck(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--diff")...)
	if code != Different || !strings.Contains(stdout, "--- /dev/null\n+++ b/plan.yaml\n") {
		t.Errorf("want exit 2 and the whole bundle as a difference, got %d:\n%s", code, stdout)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("want nothing written")
	}
}

func TestAHandEditIsRefusedAndFoundByCheck(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	want := files(t, dir)
	b.file(t, "out/values.yaml", "mine")
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused || !strings.Contains(stderr, "--force") {
		t.Errorf("want exit 3 that names --force, got %d: %s", code, stderr)
	}
	stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...)
	if code != Different || !oneLine(stdout, "handEdit: values.yaml was edited by hand") {
		t.Errorf("want exit 2 and one hand edit, got %d: %q", code, stdout)
	}
	b.ok(t, generation("vanilla", "helm", dir, "--force")...)
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.file(t, "out/plan.yaml", strings.Replace(want["plan.yaml"], "clusterID: kubernetes", "clusterID: mine", 1))
	if stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...); code != Different || !oneLine(stdout, "handEdit: plan.yaml was edited by hand") {
		t.Errorf("plan.yaml: want exit 2 and one hand edit, got %d: %q", code, stdout)
	}
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused || !strings.Contains(stderr, "--force") {
		t.Errorf("plan.yaml: want exit 3 that names --force, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, "validate", dir); code != Failure || !strings.Contains(stderr, "plan.yaml differs from what generate wrote") {
		t.Errorf("plan.yaml: want validate to end with 1 and say so, got %d: %s", code, stderr)
	}
}

// People type --force for one file that they edited. It must not remove a class along with the edit.
func TestForceForAHandEditAcceptsNoGuardedChange(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	b.file(t, "out/values.yaml", "mine")
	b.sim.RemoveVolumeType("fast")
	before := files(t, dir)
	args := generation("vanilla", "helm", dir, "--force")
	_, stderr, code := b.run(t, args...)
	if code != Refused || !strings.Contains(stderr, "--accept class-removed") || strings.Contains(stderr, "values.yaml was edited") {
		t.Errorf("want exit 3 for the class alone, got %d: %s", code, stderr)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Fatalf("a refused run wrote (-before +after):\n%s", diff)
	}
	b.ok(t, append(args, "--accept", "class-removed")...)
	if after := files(t, dir); after["values.yaml"] == "mine" {
		t.Error("want the edit replaced once both are allowed")
	}
}

func TestCheckOfABrokenPlanIsADifferenceAndGenerateRefuses(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir)...)
	edited := strings.Replace(files(t, dir)["plan.yaml"], "\nconfig:\n", "\nconfig:\n  planes: {}\n", 1)
	b.file(t, "out/plan.yaml", edited)
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused || !strings.Contains(stderr, "it is now called roles") ||
		!strings.Contains(stderr, "undoes an edit since the last commit") || strings.Contains(stderr, "branch") {
		t.Errorf("want exit 3, and nothing about a merge that there was not, got %d: %s", code, stderr)
	}
	b.file(t, "out/plan.yaml", "mine: true\n")
	if stdout, _, code := b.run(t, generation("vanilla", "helm", dir, "--check")...); code != Different || !oneLine(stdout, "handEdit: plan.yaml is in the way") {
		t.Errorf("want exit 2 and a hand edit of plan.yaml, got %d: %q", code, stdout)
	}
	if _, stderr, code := b.run(t, generation("vanilla", "helm", dir)...); code != Refused {
		t.Errorf("want exit 3, got %d: %s", code, stderr)
	}
	b.file(t, "out/plan.yaml", "apiVersion: generator.cinder-csi.io/v2\nkind: Plan\ngenerator: v9\n")
	for _, flag := range []string{"--check", "--force"} {
		if _, stderr, code := b.run(t, generation("vanilla", "helm", dir, flag)...); code != Failure || !strings.Contains(stderr, "made by newer") {
			t.Errorf("%s: want exit 1 for a newer plan, got %d: %s", flag, code, stderr)
		}
	}
}

func TestADirectoryOfAnotherTargetFormatOrCloudIsRefusedWithoutForce(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("standalone", "kustomize", dir)...)
	before := files(t, dir)
	foreignCloud := generation("standalone", "kustomize", dir)
	foreignCloud[2] = "sim-other"
	for name, args := range map[string][]string{
		"target": generation("hypershift", "kustomize", dir, "--accept", "namespace"), "format": generation("standalone", "helm", dir), "cloud": foreignCloud,
	} {
		if _, stderr, code := b.run(t, args...); code != Refused || !strings.Contains(stderr, "to allow it: ") {
			t.Errorf("another %s: want exit 3 that names what allows it, got %d: %s", name, code, stderr)
		}
		if diff := cmp.Diff(before, files(t, dir)); diff != "" {
			t.Fatalf("another %s: a refused run wrote (-before +after):\n%s", name, diff)
		}
	}
	if _, stderr, code := b.run(t, append(foreignCloud, "--accept", "cloud")...); code != OK {
		t.Errorf("want --accept cloud to do, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, generation("standalone", "helm", dir, "--force")...); code != OK {
		t.Errorf("want --force to do, got %d: %s", code, stderr)
	}
	if _, left := files(t, dir)["kustomization.yaml"]; left {
		t.Error("want the other format's files pruned")
	}
}

func TestAChangedMindIsRefusedUntilItIsAccepted(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	b.sim.RemoveVolumeType("fast")
	args := generation("vanilla", "kustomize", dir)
	_, stderr, code := b.run(t, args...)
	if code != Refused || !strings.Contains(stderr, "--accept class-removed") || !strings.Contains(stderr, "name: fast") {
		t.Fatalf("want exit 3, the --accept, and the YAML to paste, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, append(args, "--check")...); code != Different || !strings.Contains(stderr, "--accept class-removed") {
		t.Errorf("check: want exit 2 that names the --accept, got %d: %s", code, stderr)
	}
	b.ok(t, append(args, "--accept", "class-removed")...)
	b.ok(t, append(args, "--check")...)
}

// A name of a registry that nobody owns would be an invitation, so there is no default. Only a bundle that nobody applies may lack one.
func TestABundleOfARealCloudNeedsARegistryForItsImages(t *testing.T) {
	b := newBed(t)
	b.ReadOnly = false
	dir := filepath.Join(b.dir, "out")
	for spec, want := range map[string]string{
		"{}":                                  "spec.images.driver: no registry has this image by default",
		"spec: {images: {driver: {tag: v2}}}": "spec.images.driver: ",
		"spec: {images: {driver: {registry: r.example}}, driftCheck: {schedule: '@daily'}}": "spec.images.generator: ",
		"spec: {driftCheck: {schedule: '@daily'}}":                                          "spec.images.driver, spec.images.generator: ",
		"spec: {roles: {node: {images: {driver: {registry: r.example}}}}}":                  "spec.images.driver: ",
	} {
		_, stderr, code := b.run(t, generation("vanilla", "helm", dir, "--config", b.file(t, "config.yaml", spec))...)
		if code != Usage || !strings.Contains(stderr, want) {
			t.Errorf("%s: want exit 64 and %q, got %d: %s", spec, want, code, stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("want nothing written")
	}
	b.ok(t, generation("vanilla", "helm", dir, "--config", b.file(t, "config.yaml", "spec: {images: {registry: r.example}}"))...)
	b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "vanilla")
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", filepath.Join(b.dir, "simulated"))
}

func TestBundlesOfASimulatedCloudSaySo(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", dir)
	for name, content := range files(t, dir) {
		if !strings.Contains(strings.ToLower(content), "simulated") {
			t.Errorf("%s does not say that it is simulated", name)
		}
	}
}

// copyManifests copies manifests/ to a directory of the test's.
func copyManifests(t *testing.T, b *bed, name string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(b.dir, name), os.DirFS("../../manifests")); err != nil {
		t.Fatal(err)
	}
}

func TestABaseThatIsNotThereIsWarnedAbout(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	copyManifests(t, b, "src")
	for base, want := range map[string]bool{"../nowhere": true, "../src": false} {
		_, stderr, code := b.run(t, generation("vanilla", "kustomize", dir, "--base", base)...)
		if got := strings.Contains(stderr, "is no checkout of manifests/") && strings.Contains(stderr, "Nothing verifies the bundle"); code != OK || got != want {
			t.Errorf("%s: want a warning %t, got %d: %s", base, want, code, stderr)
		}
	}
	if _, stderr, code := b.run(t, generation("vanilla", "kustomize", dir, "--base", filepath.Join(b.dir, "src"))...); code != Usage || !strings.Contains(stderr, "relative to the bundle's directory") {
		t.Errorf("want an absolute base to be wrong usage, as kustomize takes none, got %d: %s", code, stderr)
	}
}

func TestABundleWithABaseIsVerifiedBeforeItIsWrittenAndWhereItIs(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	copyManifests(t, b, "src")
	if err := os.Symlink(b.dir, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, target := range map[string]string{"vanilla": "vanilla", "standalone": "standalone", "hypershift": "hypershift", "link/vanilla-2": "vanilla"} {
		dir = filepath.Join(b.dir, dir)
		b.ok(t, generation(target, "kustomize", dir, "--base", "../src")...)
		b.ok(t, "validate", dir, "--base", "../src")
		b.ok(t, "explain", "--base", "../src", "daemonset/cinder-csi-node", "spec", dir)
		if _, stderr, code := b.run(t, "validate", dir); code != Failure || !strings.Contains(stderr, "give --base ../src too") {
			t.Errorf("validate without --base: want exit 1 that asks for it, got %d: %s", code, stderr)
		}
	}
	b.ok(t, generation("vanilla", "kustomize", filepath.Join(b.dir, "vanilla"), "--base", "../src", "--check")...)
	self := filepath.Join(b.dir, "self")
	b.ok(t, generation("vanilla", "kustomize", self)...)
	if want, got := b.ok(t, "validate", self), b.ok(t, "validate", "--base", "../src", filepath.Join(b.dir, "vanilla")); want != got {
		t.Errorf("want the same objects with a base, %q, got %q", want, got)
	}

	b.file(t, "src/vanilla/csidriver.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
	dir := filepath.Join(b.dir, "out")
	if _, stderr, code := b.run(t, generation("vanilla", "kustomize", dir, "--base", "../src")...); code != Failure || !strings.Contains(stderr, "does not stand its own verification") {
		t.Errorf("want exit 1 for a base that does not fit, got %d: %s", code, stderr)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("want nothing written, got %v", got)
	}
	if _, stderr, code := b.run(t, "validate", "--base", "../src", filepath.Join(b.dir, "vanilla")); code != Failure || !strings.Contains(stderr, "csidriver.yaml differs") {
		t.Errorf("validate: want exit 1, got %d: %s", code, stderr)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "src")); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := b.run(t, "validate", "--base", "../src", filepath.Join(b.dir, "vanilla")); code != Failure || !strings.Contains(stderr, "src/vanilla") {
		t.Errorf("validate: want exit 1 that names the base, got %d: %s", code, stderr)
	}
}

func TestValidateFindsABundleThatDoesNotBuild(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	if got, want := b.ok(t, "validate", dir), "cluster: 35 objects verified\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	b.file(t, "out/kustomization.yaml", "resources: [nowhere.yaml]\n")
	if _, stderr, code := b.run(t, "validate", dir); code != Failure || !strings.Contains(stderr, "nowhere.yaml") {
		t.Errorf("want exit 1 that names the file, got %d: %s", code, stderr)
	}
	b.file(t, "out/plan.yaml", "")
	if _, stderr, code := b.run(t, "validate", dir); code != Failure || !strings.Contains(stderr, "plan.yaml") {
		t.Errorf("want exit 1 that names the plan, got %d: %s", code, stderr)
	}
}
