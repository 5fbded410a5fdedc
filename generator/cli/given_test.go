package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const twoZones = "../../examples/inventories/two-zones.yaml"

// configurations are the examples, and some whose keys plan.yaml cannot tell from the normalised configuration. Each has an image.
func configurations(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string]string{
		"name-and-id":    "metadata: {name: prod}\nspec: {clusterID: a1}",
		"id":             "spec: {clusterID: a1}",
		"id-by-default":  "spec: {clusterID: kubernetes}",
		"same-id":        "metadata: {name: prod}\nspec: {clusterID: prod}",
		"infra-and-name": "metadata: {name: prod}\nspec: {hypershift: {infraID: prod-x7}}",
		"defaults": "spec: {driver: {logLevel: 2, logFormat: text, seLinux: auto, drainTimeout: 20s}, openshift: {coexistence: sideBySide}, volumeAttachLimit: auto, " +
			"snapshots: {enabled: true}, storageClasses: {include: [\"*\"], default: auto}, monitoring: {kind: none}, hypershift: {guestAccess: serviceAccountToken}}",
	}
	examples, err := filepath.Glob("../../examples/distribution/*.yaml")
	if err != nil || len(examples) < 6 {
		t.Fatalf("want the examples, got %v, %v", examples, err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(name), ".yaml")] = string(text)
	}
	all := map[string][]byte{}
	for name, text := range texts {
		d, err := v1alpha1.DecodeDistribution(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if d.Spec.Images.Driver == (v1alpha1.Image{}) {
			d.Spec.Images.Driver = v1alpha1.Image{Registry: "registry.example", Repository: "driver", Tag: "v1"}
		}
		if all[name], err = v1alpha1.YAML(d); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each bundle is made in one format in turn; with -full, in both.
func TestACheckWithoutAConfigurationFindsNoDriftInAnyBundle(t *testing.T) {
	testenv.NotShort(t)
	b := newBed(t)
	checked := 0
	all := configurations(t)
	for n, name := range slices.Sorted(maps.Keys(all)) {
		config := b.file(t, name+".yaml", string(all[name]))
		for at, target := range targets {
			for which, format := range formats {
				if (n+at)%len(formats) != which && !testenv.Full() {
					continue
				}
				dir := filepath.Join(b.dir, name+"-"+target+"-"+format)
				args := []string{"generate", "--inventory", twoZones, "--output-dir", dir}
				_, stderr, code := b.run(t, append(args, "--target", target, "--format", format, "--config", config)...)
				if code == Usage { // it is for another target
					continue
				}
				if code != OK {
					t.Fatalf("%s: exit %d: %s", dir, code, stderr)
				}
				checked++
				if stdout, stderr, code := b.run(t, append(args, "--check")...); code != OK {
					t.Errorf("%s %s %s: want exit 0, got %d: %s%s", name, target, format, code, stdout, stderr)
				}
			}
		}
	}
	if checked < 25 || testenv.Full() && checked < 50 {
		t.Errorf("want most configurations on most targets, got %d", checked)
	}
}

func TestACheckSaysThatOtherKeysChangeNoDecision(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	b.ok(t, generation("vanilla", "helm", dir, "--config", b.file(t, "a.yaml", "spec: {credentials: {key: clouds.yaml}}"))...)
	stdout, stderr, code := b.run(t, generation("vanilla", "helm", dir, "--check", "--config", b.file(t, "b.yaml", "{}"))...)
	if code != Different || !oneLine(stdout, "config: its keys, or its name, are others, and every decision is the same") {
		t.Errorf("want one line, got %d: %s%s", code, stdout, stderr)
	}
}

func TestACheckKnowsTheBaseAndReadsNothingBelowIt(t *testing.T) {
	b := newBed(t)
	dir := filepath.Join(b.dir, "out")
	copyManifests(t, b, "src")
	b.ok(t, generation("vanilla", "kustomize", dir, "--base", "../src")...)
	check := []string{"generate", "--os-cloud", "sim-demo", "--check", "--output-dir", dir}
	if stdout, stderr, code := b.run(t, check...); code != Failure || !strings.Contains(stderr, "Nothing proved the bundle: give --base ../src if you trust that directory") {
		t.Errorf("want exit 1, because the base is outside of the working directory, got %d: %s%s", code, stdout, stderr)
	}
	b.ok(t, append(check, "--base", "../src")...)
	if err := os.RemoveAll(filepath.Join(b.dir, "src")); err != nil {
		t.Fatal(err)
	}
	b.sim.SetDefaultVolumeType("fast")
	stdout, stderr, code := b.run(t, check...)
	if code != Different || !oneLine(stdout, "cloud: defaultVolumeType changes from standard to fast") || !strings.Contains(stderr, "the comparison takes ../src from ") {
		t.Errorf("want one change of the cloud, got %d: %s%s", code, stdout, stderr)
	}
}

// The two drift checks agree without a configuration on the command line, too.
func TestPlanCheckTakesTheConfigurationOfThePlan(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "config.yaml", "metadata: {name: prod}\nspec: {clusterID: a1, storageClasses: {exclude: [fast]}, topology: {mode: disabled}}\n")
	dir := filepath.Join(b.dir, "out")
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", "helm", "--output-dir", dir, "--config", config)
	plan := filepath.Join(dir, "plan.yaml")
	stdout, stderr, code := b.run(t, "plan", "--simulated", "--check", plan)
	if code != OK || stdout != "" || !strings.Contains(stderr, "Without --config, the configuration is that in "+plan) {
		t.Errorf("want the decisions of the bundle, got %d: %s%s", code, stdout, stderr)
	}
	b.sim.RemoveVolumeType("standard")
	checked, _, code := b.run(t, "generate", "--simulated", "--check", "--output-dir", dir)
	planned, _, also := b.run(t, "plan", "--simulated", "--check", plan)
	if code != Different || also != Different || checked != planned || !strings.Contains(checked, "StorageClass standard is removed") {
		t.Errorf("want the same lines, got %d and %d:\n%s---\n%s", code, also, checked, planned)
	}
}
