package verify_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// TestAPlanHoldsAllThatItsBundleIsMadeOf renders from plan.yaml as it is read from disk: explain and the comparison of two bundles
// rest on that. The bundle with its comments has the objects of the one without. Each is
// made in one format in turn; with -full, in both.
func TestAPlanHoldsAllThatItsBundleIsMadeOf(t *testing.T) {
	for n, name := range slices.Sorted(maps.Keys(specs())) {
		spec := specs()[name]
		for at, target := range targets {
			for which, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				if (n+at)%2 != which && !testenv.Full() {
					continue
				}
				decided := decide(t, spec, clouds["topology on"], target)
				r := decided
				r.Format, r.Warnings = format, nil
				text, err := v1alpha1.YAML(r.Document(nil))
				if err != nil {
					t.Fatal(err)
				}
				document, err := v1alpha1.DecodePlan("plan.yaml", text)
				if err != nil {
					t.Fatal(err)
				}
				again, err := plan.FromDocument(document)
				if err != nil {
					t.Fatal(err)
				}
				want, got := render(t, r, format), render(t, again, format)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s, %s: (-want +got):\n%s", name, target, format, diff)
				}
				objects, findings, err := verify.Bundle(want, target, format)
				if err != nil || len(findings) > 0 {
					t.Fatal(name, target, format, findings, err)
				}
				for _, difference := range differences(objects, build(t, decided, format)) {
					t.Errorf("%s, %s, %s: with comments %s", name, target, format, difference)
				}
			}
		}
	}
}

// The values of the file are those that the bundle was made with, whatever is decided, so the comparison with them renders nothing.
func TestABundleIsComparedWithTheRenderingThatMadeIt(t *testing.T) {
	for _, target := range targets {
		r := decide(t, specs()["everything"], clouds["topology on"], target)
		whole := 0
		chart := func(values map[string]any, strict bool, only ...string) (map[string]string, error) {
			if len(only) == 0 {
				whole++
			}
			return uncommented(values, strict, only...)
		}
		rendered := verify.RenderedAnew()
		tree, err := bundle.Render(r, chart, bundle.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, findings, err := verify.Bundle(tree, target, v1alpha1.Kustomize); err != nil || len(findings) > 0 {
			t.Fatal(findings, err)
		}
		if rendered() != whole {
			t.Errorf("%s: want the %d renderings that made the bundle, got %d", target, whole, rendered())
		}
	}
}
