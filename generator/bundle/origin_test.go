package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files of manifests/ are parsed once. What one bundle says about their origin must not reach another.
func TestSourcesOfAKustomizationHaveTheirOwnOrigin(t *testing.T) {
	const dir = "components/alerts-drift-check"
	refs := [][]Ref{{{Decision: "one"}}, {{Decision: "another"}}, nil}
	var all [][]source
	for _, r := range refs {
		got, err := sourcesIn(dir, r)
		if err != nil || len(got) == 0 {
			t.Fatalf("%d sources, %v", len(got), err)
		}
		all = append(all, got)
	}
	for i, sources := range all {
		for _, s := range sources {
			if diff := cmp.Diff(refs[i], s.origin.Refs); diff != "" || s.origin.File == "" {
				t.Errorf("%s of %q: origin (-want +got):\n%s", s.target, s.origin.File, diff)
			}
		}
	}
	if _, err := sourcesIn("components/none", nil); err == nil {
		t.Error("want an error for a directory without a kustomization")
	}
}
