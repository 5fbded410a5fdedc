package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func TestPlanShowsWhoDecided(t *testing.T) {
	b := newBed(t)
	all := b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "vanilla")
	first, _, _ := strings.Cut(all, "\n")
	if !strings.Contains(first, " decisions: 7 by the cloud, 2 by the configuration, ") {
		t.Errorf("want a first line that counts, got %q", first)
	}
	part := b.ok(t, "plan", "--os-cloud", "sim-demo", "--target", "vanilla", "--from", "cloud")
	if !strings.HasPrefix(part, first) || !strings.Contains(part, "topology.enabled") || strings.Contains(part, "driver.logLevel") {
		t.Errorf("want what the cloud decided, got:\n%s", part)
	}
	for _, args := range [][]string{{"--from", "me"}, {"--from", "cloud", "-o", "yaml"}, {"--from", "cloud", "--check", "plan.yaml"}} {
		if _, stderr, code := b.run(t, append([]string{"plan", "--os-cloud", "sim-demo", "--target", "vanilla"}, args...)...); code != Usage || !strings.Contains(stderr, "--from") {
			t.Errorf("%v: want exit 64, got %d: %s", args, code, stderr)
		}
	}
}

func TestExplainTakesTheIDOfADecision(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	got := b.ok(t, "explain", "topology.enabled", dir)
	want := "value: true\ndecision: topology.enabled (inferred)\nreason: every compute zone has a volume zone of the same name\nfact: zones.compute = az1, az2\nfact: zones.volume = az1, az2\nobjects: "
	if !strings.HasPrefix(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	if _, stderr, code := b.run(t, "explain", "topology", dir); code != Usage || !strings.Contains(stderr, "there are driver.topologyKey, topology.enabled") {
		t.Errorf("want exit 64 and the ids that are near, got %d: %s", code, stderr)
	}
	if _, stderr, code := b.run(t, "explain", "colour", dir); code != Usage || !strings.Contains(stderr, "KIND/NAME") {
		t.Errorf("want exit 64, got %d: %s", code, stderr)
	}
}

func TestAnUnchangedBundleIsNotBuiltAgain(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "kustomize", dir)...)
	built := 0
	b.Verify = func(string, map[string][]byte, map[string][]byte, v1alpha1.Target, v1alpha1.Format) ([]verify.Object, []verify.Finding, error) {
		built++
		return nil, nil, nil
	}
	b.ok(t, generation("vanilla", "kustomize", dir, "--check")...)
	b.ok(t, "explain", "storageclass/fast", "volumeBindingMode", dir)
	if built != 0 {
		t.Errorf("want an unchanged bundle not built, got %d times", built)
	}
	b.World.Version = "v0-other"
	if _, stderr, code := b.run(t, generation("vanilla", "kustomize", dir, "--check")...); code != Different || built != 1 {
		t.Errorf("want the bundle of another version built once, got %d times, exit %d: %s", built, code, stderr)
	}
}
