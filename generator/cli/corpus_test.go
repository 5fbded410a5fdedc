package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Each input of the corpus of import goes the whole way: import, generate, and validate. Validate parses flags and cloud.conf as the driver does
// when it starts. Equal proposals go it once.
func TestTheDriverStartsWithWhatImportProposes(t *testing.T) {
	b := newBed(t)
	inventory := b.file(t, "inventory.yaml", b.ok(t, "inspect", "--simulated", "-o", "yaml"))
	proposals := map[string]string{} // the inputs, by what import proposes
	for _, input := range corpusInputs(t) {
		stdout, _, code := b.run(t, "import", "--inventory", inventory, b.file(t, "input", input.text))
		if code == OK && proposals[stdout] == "" {
			proposals[stdout] = input.name
		}
	}
	played := 0
	for i, text := range sortedByName(proposals) {
		if i%20 != 7 && !testenv.Full() {
			continue
		}
		played++
		d, err := v1alpha1.DecodeDistribution("proposal", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		image := &d.Spec.Images.Driver
		image.Registry, image.Repository, image.Tag = "registry.example.com", "driver", "v1"
		withImage, err := v1alpha1.YAML(d)
		if err != nil {
			t.Fatal(err)
		}
		format, dir := []string{"kustomize", "helm"}[i%2], filepath.Join(b.dir, "bundle")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := b.run(t, "generate", "--inventory", inventory, "--target", "vanilla", "--format", format, "--output-dir", dir,
			"--config", b.file(t, "d.yaml", string(withImage))); code != OK {
			t.Errorf("%s: generate: exit %d\n%s%s", proposals[text], code, stderr, text)
			continue
		}
		if _, stderr, code := b.run(t, "validate", dir); code != OK {
			t.Errorf("%s: validate: exit %d\n%s%s", proposals[text], code, stderr, text)
		}
	}
	t.Logf("%d of %d proposals", played, len(proposals))
}

// corpusInput is an input of the corpus of import.
type corpusInput struct{ name, text string }

func corpusInputs(t *testing.T) []corpusInput {
	t.Helper()
	paths, err := filepath.Glob("../migrate/testdata/corpus/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []corpusInput
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n=== ")[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			input, _, _ := strings.Cut(rest, "\n--> ")
			all = append(all, corpusInput{filepath.Base(path) + ", " + name, input + "\n"})
		}
	}
	if len(all) < 150 {
		t.Fatalf("want 150 inputs or more, got %d", len(all))
	}
	return all
}

// sortedByName are the keys of a map in the order of its values.
func sortedByName(names map[string]string) []string {
	var keys []string
	for key := range names {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(names[a], names[b]) })
	return keys
}
