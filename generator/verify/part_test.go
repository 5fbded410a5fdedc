package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func TestAPartOfABundleIsWhatTheWholeHas(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.HostedControlPlane} {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			tree := partTree(t, target, format)
			whole, _, err := verify.Bundle(tree, target, format)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]bool{}
			for _, o := range whole {
				kinds[o.Kind()] = true
			}
			for kind := range kinds {
				isKind := func(k string) bool { return k == kind }
				part, err := verify.ObjectsAt("", "", tree, target, format, isKind)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(ofKind(whole, kind), ofKind(part, kind)); diff != "" {
					t.Errorf("%s %s %s (-whole +part):\n%s", target, format, kind, diff)
				}
				if class := kind == "StorageClass" && format == v1alpha1.Kustomize; class == slices.ContainsFunc(part, func(o verify.Object) bool { return o.Kind() == "Deployment" }) && target == v1alpha1.Vanilla {
					t.Errorf("%s %s: want no Deployment built for a class, and one for any other object", target, format)
				}
			}
		}
	}
}

func partTree(t *testing.T, target v1alpha1.Target, format v1alpha1.Format) map[string][]byte {
	t.Helper()
	r, err := plan.Decide(inventory("az 1", "az2"), v1alpha1.Distribution{Spec: v1alpha1.Spec{Images: v1alpha1.Images{Driver: v1alpha1.Image{Tag: "v1"}}}}, target, format, "v0-test")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := bundle.Render(r, verify.Kustomize, bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func ofKind(objects []verify.Object, kind string) []verify.Object {
	objects = slices.DeleteFunc(slices.Clone(objects), func(o verify.Object) bool { return o.Kind() != kind })
	slices.SortFunc(objects, func(a, b verify.Object) int { return strings.Compare(a.String(), b.String()) })
	return objects
}
