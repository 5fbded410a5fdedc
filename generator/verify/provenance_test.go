package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// TestExplainHasAnAnswerForEveryValue asks the index of each bundle about every leaf of every object that kustomize and Helm build.
func TestExplainHasAnAnswerForEveryValue(t *testing.T) {
	for name, spec := range specs() {
		for _, target := range targets {
			t.Run(fmt.Sprintf("%s/%s", name, target), func(t *testing.T) {
				t.Parallel()
				r := decide(t, spec, clouds["topology on"], target)
				index, err := bundle.IndexOf(r)
				if err != nil {
					t.Fatal(err)
				}
				decided := map[string]bool{}
				for _, d := range r.Document(nil).Decisions {
					decided[d.ID] = true
				}
				for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
					for _, o := range build(t, r, format) {
						for _, leaf := range field.Leaves(o.Fields, nil) {
							origin, known := index.Origin(o.Plane, o.Kind(), o.Name(), leaf)
							if !known && !(format == v1alpha1.Helm && slices.Contains(verify.ChartLabels, leaf[len(leaf)-1])) {
								t.Errorf("%s: %s: %s comes from nowhere", format, o, leaf)
							}
							for _, ref := range origin.Refs {
								if !decided[ref.Decision] {
									t.Errorf("%s: %s: %s comes from %s, which is not in the plan", format, o, leaf, ref)
								}
							}
						}
					}
				}
			})
		}
	}
}

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
