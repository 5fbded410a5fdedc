// Package switches has every key of a Distribution with values for tests, and rows of them in which every two values meet.
package switches

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/kit/pairwise"
)

// Row is one configuration: for each switch the index of its value, 0 for "not set".
type Row = pairwise.Row

// WholeRows is how many rows, the first ones, are not pairwise.
const WholeRows = 4

// Rows are the rows of all switches: all off, all on, all on for the oldest and the newest Kubernetes, and pairwise.
func Rows() []Row {
	var counts []int
	on := make(Row, len(All))
	for i, s := range All {
		counts = append(counts, len(s.Values)+1)
		on[i] = min(1, len(s.Values))
	}
	oldest, newest := slices.Clone(on), slices.Clone(on)
	at := slices.IndexFunc(All, func(s Setting) bool { return s.Key == "kubernetesVersion" })
	oldest[at], newest[at] = 1, len(All[at].Values)
	return append([]Row{make(Row, len(All)), on, oldest, newest}, pairwise.Rows(counts)...)
}

// Configure sets the values of a row, and leaves out what accept refuses beside an earlier value. It returns those that were taken, as "KEY=VALUE". The
// last call that accept accepted has them all. It tries all values at once, and each half of what is refused: a decision takes as long as a rendering.
func Configure(r Row, accept func(spec map[string]any) error) ([]string, error) {
	spec := map[string]any{}
	if err := accept(spec); err != nil {
		return nil, err
	}
	var taken []string
	var set func(indexes []int)
	set = func(indexes []int) {
		more := spec
		for _, i := range indexes {
			more = withPath(more, strings.Split(All[i].Key, "."), All[i].Values[r[i]-1])
		}
		switch half := len(indexes) / 2; {
		case len(indexes) == 0:
		case accept(more) == nil:
			spec = more
			for _, i := range indexes {
				taken = append(taken, Name(All[i].Key, All[i].Values[r[i]-1]))
			}
		case half > 0:
			set(indexes[:half])
			set(indexes[half:])
		}
	}
	var indexes []int
	for i, v := range r {
		if v != 0 {
			indexes = append(indexes, i)
		}
	}
	set(indexes)
	return taken, nil
}

// Name is how Configure names a value that it took.
func Name(key string, value any) string { return fmt.Sprintf("%s=%v", key, value) }

// withPath is a copy of nested maps with another value at a path.
func withPath(in map[string]any, path []string, value any) map[string]any {
	copied := maps.Clone(in)
	if copied == nil {
		copied = map[string]any{}
	}
	if len(path) > 1 {
		next, _ := in[path[0]].(map[string]any)
		value = withPath(next, path[1:], value)
	}
	copied[path[0]] = value
	return copied
}
