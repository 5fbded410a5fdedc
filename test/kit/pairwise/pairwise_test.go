package pairwise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowsHaveEveryPair(t *testing.T) {
	values := []int{2, 3, 2, 4, 2, 2, 3}
	rows := Rows(values)
	for a := range values {
		for b := a + 1; b < len(values); b++ {
			seen := map[[2]int]bool{}
			for _, r := range rows {
				seen[[2]int{r[a], r[b]}] = true
			}
			if len(seen) != values[a]*values[b] {
				t.Errorf("settings %d and %d: want %d pairs, got %d", a, b, values[a]*values[b], len(seen))
			}
		}
	}
	if len(rows) > 20 {
		t.Errorf("want at most 20 rows, got %d", len(rows))
	}
}

func TestRowsAreTheSameEachTime(t *testing.T) {
	values := []int{3, 2, 5, 2, 4}
	if diff := cmp.Diff(Rows(values), Rows(values)); diff != "" {
		t.Errorf("two calls give different rows:\n%s", diff)
	}
}
