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
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/switches"
)

// configure sets the values of a row. It leaves out what plan refuses for this target or beside an earlier value, and counts what it takes.
func configure(t *testing.T, r switches.Row, target v1alpha1.Target, taken map[string]bool) (plan.Result, v1alpha1.Spec) {
	t.Helper()
	var accepted plan.Result
	var spec v1alpha1.Spec
	names, err := switches.Configure(r, func(fields map[string]any) error {
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
		result, err := plan.Decide(clouds["topology on"], d, target, v1alpha1.Kustomize, "v0.0.0-test")
		if err == nil {
			accepted, spec = result, d.Spec
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		taken[name] = true
	}
	return accepted, spec
}

// TestKustomizeEqualsHelmPairwiseOverEverySwitch gives each pair to one target; make test-render PAIRWISE=1 and make test-strict give it to all.
// The patches of a whole row have comments for one target.
func TestKustomizeEqualsHelmPairwiseOverEverySwitch(t *testing.T) {
	taken := map[string]bool{}
	for at, target := range targets {
		for n, r := range switches.Rows() {
			if n >= switches.WholeRows && n%len(targets) != at {
				continue
			}
			result, _ := configure(t, r, target, taken)
			chart := uncommented
			if n < switches.WholeRows && n%len(targets) == at {
				chart = verify.Chart
			}
			t.Run(fmt.Sprintf("%s/%d", target, n), func(t *testing.T) {
				t.Parallel()
				for _, difference := range differences(buildAlone(t, result, v1alpha1.Kustomize, chart), buildAlone(t, result, v1alpha1.Helm, chart)) {
					t.Error(difference)
				}
			})
		}
	}
	for _, s := range switches.All {
		for _, value := range s.Values {
			if name := switches.Name(s.Key, value); !taken[name] {
				t.Errorf("%s is refused for every target, beside whatever else", name)
			}
		}
	}
}

// TestEveryKeyOfADistributionIsASwitch fails for a key that is new and that no test switches.
func TestEveryKeyOfADistributionIsASwitch(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range switches.All {
		listed[s.Key] = true
	}
	for _, key := range keysOf("", reflect.TypeFor[v1alpha1.Spec]()) {
		if !listed[key] {
			t.Errorf("no switch has the key %s; add it to test/kit/switches", key)
		}
	}
}

// wholes are the types whose parts are one switch together.
var wholes = []reflect.Type{
	reflect.TypeFor[v1alpha1.Image](), reflect.TypeFor[v1alpha1.Proxy](), reflect.TypeFor[v1alpha1.UpdateStrategy](),
	reflect.TypeFor[v1alpha1.RequestsPerSecond](),
}

func keysOf(path string, of reflect.Type) []string {
	if of.Kind() != reflect.Struct || slices.Contains(wholes, of) || path == "roles.controller.images" || path == "roles.node.images" {
		return []string{path}
	}
	var all []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, keysOf(strings.TrimPrefix(path+"."+name, "."), field.Type)...)
	}
	return all
}
