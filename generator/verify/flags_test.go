package verify

import (
	"maps"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/charts"
)

func TestTheFlagsAreThoseOfTheSidecarsThatABundleNames(t *testing.T) {
	roles, err := charts.Images()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, images := range roles {
		for name, image := range images {
			side, is := sidecars()[name]
			if !is {
				continue
			}
			seen[name] = true
			if side.Version != image.Tag {
				t.Errorf("%s: the flags are those of %s (%s), but a bundle names %s; run make sidecar-flags, or correct sidecars-by-hand.yaml",
					name, side.Version, side.Source, image.Tag)
			}
			if !slices.IsSorted(side.Flags) || len(side.Flags) < 10 {
				t.Errorf("%s: the flags are not sorted, or too few: %v", name, side.Flags)
			}
		}
	}
	if want := slices.Sorted(maps.Keys(sidecars())); !slices.Equal(want, slices.Sorted(maps.Keys(seen))) {
		t.Errorf("there are flags of %v, but images of %v", want, seen)
	}
}

func TestExpandReplacesVariablesAsTheKubeletDoes(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)"}
	for text, want := range map[string]string{
		"--v=$(A)":   "--v=1",
		"$(A)$(B)":   "1$(A)",
		"$$(A)":      "$(A)",
		"$(MISSING)": "$(MISSING)",
		"$A":         "$A",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("%s: want %s, got %s", text, want, got)
		}
	}
}
