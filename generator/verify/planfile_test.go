package verify_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// TestAPlanHoldsAllThatItsBundleIsMadeOf renders from plan.yaml as it is read from disk: explain and the comparison of two bundles
// rest on that.
func TestAPlanHoldsAllThatItsBundleIsMadeOf(t *testing.T) {
	for name, spec := range specs() {
		for _, target := range targets {
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				r := decide(t, spec, clouds["topology on"], target)
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
			}
		}
	}
}
