package verify_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/pairwise"
)

// row is one configuration: for each switch the index of its value, 0 for "not set".
type row = pairwise.Row

// wholeRows is how many rows of configurations are not pairwise.
const wholeRows = 4

// configurations are the rows of all switches: pairwise, all off, all on, and all on for the oldest and the newest Kubernetes.
func configurations() []row {
	var counts []int
	on := make(row, len(switches))
	for i, s := range switches {
		counts = append(counts, len(s.values)+1)
		on[i] = min(1, len(s.values))
	}
	oldest, newest := slices.Clone(on), slices.Clone(on)
	at := slices.IndexFunc(switches, func(s setting) bool { return s.key == "kubernetesVersion" })
	oldest[at], newest[at] = 1, len(switches[at].values)
	return append([]row{make(row, len(switches)), on, oldest, newest}, pairwise.Rows(counts)...)
}

// configure sets the values of a row. It leaves out what plan refuses for this target or beside an earlier value, and counts what it
// takes, by "KEY=VALUE". It tries all values at once, and each half of what is refused: a decision takes as long as a rendering.
func configure(t *testing.T, r row, target v1alpha1.Target, taken map[string]bool) (plan.Result, v1alpha1.Spec) {
	t.Helper()
	inv := clouds["topology on"]
	fields := map[string]any{}
	var accepted plan.Result
	var spec v1alpha1.Spec
	try := func(fields map[string]any) error {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "generator.cinder-csi.io/v1alpha1", "kind": "Distribution", "metadata": map[string]any{"name": "prod"}, "spec": fields,
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := v1alpha1.DecodeDistribution("row", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		result, err := plan.Decide(inv, d, target, v1alpha1.Kustomize, "v0.0.0-test")
		if err == nil {
			accepted, spec = result, d.Spec
		}
		return err
	}
	if err := try(fields); err != nil {
		t.Fatal(err)
	}
	var set func(indexes []int)
	set = func(indexes []int) {
		more := fields
		for _, i := range indexes {
			more = withPath(more, strings.Split(switches[i].key, "."), switches[i].values[r[i]-1])
		}
		switch half := len(indexes) / 2; {
		case len(indexes) == 0:
		case try(more) == nil:
			fields = more
			for _, i := range indexes {
				taken[fmt.Sprintf("%s=%v", switches[i].key, switches[i].values[r[i]-1])] = true
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
	return accepted, spec
}

// withPath is a copy of nested maps with another value at a path.
func withPath(fields map[string]any, path []string, value any) map[string]any {
	next, _ := fields[path[0]].(map[string]any)
	if len(path) == 1 {
		return with(fields, path[0], value)
	}
	return with(fields, path[0], any(withPath(next, path[1:], value)))
}

// TestKustomizeEqualsHelmPairwiseOverEverySwitch gives each pair to one target; make test-render PAIRWISE=1 and make test-strict give it to all.
func TestKustomizeEqualsHelmPairwiseOverEverySwitch(t *testing.T) {
	taken := map[string]bool{}
	for at, target := range targets {
		for n, r := range configurations() {
			if n >= wholeRows && n%len(targets) != at {
				continue
			}
			result, _ := configure(t, r, target, taken)
			t.Run(fmt.Sprintf("%s/%d", target, n), func(t *testing.T) {
				t.Parallel()
				for _, difference := range differences(buildAlone(t, result, v1alpha1.Kustomize), buildAlone(t, result, v1alpha1.Helm)) {
					t.Error(difference)
				}
			})
		}
	}
	for _, s := range switches {
		for _, value := range s.values {
			if name := fmt.Sprintf("%s=%v", s.key, value); !taken[name] {
				t.Errorf("%s is refused for every target, beside whatever else", name)
			}
		}
	}
}

// TestEveryKeyOfADistributionIsASwitch fails for a key that is new and that no test switches.
func TestEveryKeyOfADistributionIsASwitch(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range switches {
		listed[s.key] = true
	}
	for _, key := range keysOf("", reflect.TypeFor[v1alpha1.Spec]()) {
		if !listed[key] {
			t.Errorf("no switch has the key %s; add it to switches", key)
		}
	}
}

// wholes are the types whose parts are one switch together.
var wholes = []reflect.Type{
	reflect.TypeFor[v1alpha1.Image](), reflect.TypeFor[v1alpha1.Proxy](), reflect.TypeFor[v1alpha1.UpdateStrategy](),
	reflect.TypeFor[v1alpha1.RequestsPerSecond](),
}

func keysOf(path string, of reflect.Type) []string {
	if of.Kind() != reflect.Struct || slices.Contains(wholes, of) || path == "planes.controller.images" || path == "planes.node.images" {
		return []string{path}
	}
	var all []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, keysOf(strings.TrimPrefix(path+"."+name, "."), field.Type)...)
	}
	return all
}
