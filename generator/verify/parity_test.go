package verify_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// clouds differ in whether their zones let topology on.
var clouds = map[string]v1alpha1.Inventory{
	"topology on":  inventory("az 1", "az2"),
	"topology off": inventory("nova"),
}

func TestKustomizeAndHelmStandForTheSameObjects(t *testing.T) {
	for name, spec := range specs() {
		for cloud, inv := range clouds {
			for _, target := range targets {
				t.Run(fmt.Sprintf("%s/%s/%s", name, cloud, target), func(t *testing.T) {
					t.Parallel()
					r := decide(t, spec, inv, target)
					for _, difference := range differences(build(t, r, v1alpha1.Kustomize), build(t, r, v1alpha1.Helm)) {
						t.Error(difference)
					}
				})
			}
		}
	}
}

func TestEachPlaneHasItsObjectsAndTogetherThereAreEnough(t *testing.T) {
	count := map[string]int{}
	total := 0
	for _, target := range targets {
		for _, o := range build(t, decide(t, v1alpha1.Spec{}, clouds["topology on"], target), v1alpha1.Kustomize) {
			count[string(target)+" "+o.Plane]++
			total++
		}
	}
	t.Log(count, total)
	if len(count) != 4 {
		t.Fatalf("want four planes, got %v", count)
	}
	for plane, n := range count {
		if n < 5 {
			t.Errorf("%s: want at least 5 objects, got %d", plane, n)
		}
	}
	if total < 80 {
		t.Errorf("want at least 80 objects in the four planes, got %d", total)
	}
}

// mutations is how many one-field changes must be noticed, all of them.
const mutations = 50

func TestNodesAreAskedForTheirLimitsAgainWhereKubernetesDoes(t *testing.T) {
	for _, c := range []struct {
		spec v1alpha1.Spec
		want any
	}{
		{v1alpha1.Spec{}, nil},
		{v1alpha1.Spec{KubernetesVersion: "1.34"}, nil},
		{v1alpha1.Spec{KubernetesVersion: "1.35"}, 60},
		{v1alpha1.Spec{KubernetesVersion: "1.36", VolumeAttachLimit: "20"}, nil}, // it does not change
	} {
		for _, o := range build(t, decide(t, c.spec, inventory("nova"), v1alpha1.Vanilla), v1alpha1.Kustomize) {
			if o.Kind() != "CSIDriver" {
				continue
			}
			spec, _ := o.Fields["spec"].(map[string]any)
			period := spec["nodeAllocatableUpdatePeriodSeconds"]
			if fmt.Sprint(period) != fmt.Sprint(c.want) {
				t.Errorf("Kubernetes %q, limit %q: want %v, got %v", c.spec.KubernetesVersion, c.spec.VolumeAttachLimit, c.want, period)
			}
		}
	}
}

func TestEveryMutationOfOneSideIsNoticed(t *testing.T) {
	for _, target := range targets {
		r := decide(t, specs()["everything"], clouds["topology on"], target)
		kustomize, helm := build(t, r, v1alpha1.Kustomize), build(t, r, v1alpha1.Helm)
		if d := differences(kustomize, helm); len(d) != 0 {
			t.Fatalf("%s: differ before any mutation: %v", target, d)
		}
		for seed := range uint64(mutations) {
			random := rand.New(rand.NewPCG(seed, 0))
			for _, side := range []string{"kustomize", "helm"} {
				left, right := clone(t, kustomize), clone(t, helm)
				changed := left
				if side == "helm" {
					changed = right
				}
				what := mutate(random, changed)
				if len(differences(left, right)) == 0 {
					t.Errorf("%s, seed %d: not noticed on %s's side: %s", target, seed, side, what)
				}
			}
		}
	}
}

func clone(t *testing.T, objects []verify.Object) []verify.Object {
	t.Helper()
	var all []verify.Object
	for _, o := range objects {
		text, err := json.Marshal(o.Fields)
		if err != nil {
			t.Fatal(err)
		}
		c := verify.Object{Plane: o.Plane}
		if err := json.Unmarshal(text, &c.Fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// place is one value in an object and the ways to put another there or to take it out.
type place struct {
	path   string
	value  any
	set    func(any)
	remove func()
}

// places are all values of an object, containers and their contents alike, but the two labels that only a chart has.
func places(path string, value any, set func(any), remove func()) []place {
	all := []place{{path, value, set, remove}}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "helm.sh/chart" || key == "app.kubernetes.io/managed-by" {
				continue
			}
			all = append(all, places(path+"."+key, v[key], func(x any) { v[key] = x }, func() { delete(v, key) })...)
		}
	case []any:
		for i := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			all = append(all, places(at, v[i], func(x any) { v[i] = x }, func() { set(slices.Concat(v[:i:i], v[i+1:])) })...)
		}
	}
	return all
}

// mutate changes one field of one object and says which.
func mutate(random *rand.Rand, objects []verify.Object) string {
	o := objects[random.IntN(len(objects))]
	all := places("", o.Fields, nil, nil)[1:] // not the object as a whole
	p := all[random.IntN(len(all))]
	what := o.String() + " " + p.path
	if random.IntN(4) == 0 {
		p.remove()
		return "removed " + what
	}
	switch v := p.value.(type) {
	case string:
		p.set(v + "x")
	case bool:
		p.set(!v)
	case float64:
		p.set(v + 1)
	case map[string]any:
		v["added"] = "x"
	case []any:
		p.set(append(slices.Clone(v), "added"))
	default:
		p.set("was null")
	}
	return fmt.Sprintf("changed %s from %v", what, p.value)
}

// BenchmarkTwoThousandTypes is the whole way from a plan to a checked bundle. generate may take 1.1 of the time of `kubectl kustomize` of its output; it took
// 0.82 and 0.84 of the processor time, in two pairs.
func BenchmarkTwoThousandTypes(b *testing.B) {
	inv := inventory("az 1", "az2")
	for i := range 2000 {
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{ID: fmt.Sprint(i), Name: fmt.Sprintf("type-%04d", i)})
	}
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		b.Run(string(format), func(b *testing.B) {
			for b.Loop() {
				r, err := plan.Decide(inv, v1alpha1.Distribution{}, v1alpha1.Vanilla, format, "v0.0.0-test")
				if err != nil {
					b.Fatal(err)
				}
				tree, err := bundle.Render(r, verify.Chart, bundle.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if objects, findings, err := verify.Bundle(tree, r.Target, format); err != nil || len(findings) != 0 || len(objects) < 2000 {
					b.Fatalf("%d objects, findings %v, error %v", len(objects), findings, err)
				}
			}
		})
	}
}
