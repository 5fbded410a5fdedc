package verify_test

import (
	"testing"
	"os"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func TestX(t *testing.T) {
	known := func(n ...string) v1alpha1.Fact[[]v1alpha1.Zone] {
		f := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known}
		for _, z := range n { f.Value = append(f.Value, v1alpha1.Zone{Name: z, Available: true}) }
		return f
	}
	inv := v1alpha1.Inventory{Simulated: true, Cloud: v1alpha1.Cloud{AuthURL: "http://x/", Region: "R", ProjectID: "p"},
		Services: v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known, Value: map[string]v1alpha1.Service{"block-storage": {Present: true, MaxMicroversion: "3.70", Endpoint: "http://10.0.0.1:8776", Port: 8776}}},
		Zones: v1alpha1.Zones{Compute: known("az1", "az2"), Volume: known("az1", "az2")},
		VolumeTypes: v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known, Value: []v1alpha1.VolumeType{{ID: "1", Name: "standard"}, {ID: "2", Name: "fast", Zones: []string{"az1"}}}},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Known, Value: "standard"},
	}
	for _, target := range []v1alpha1.Target{"vanilla", "standalone", "hypershift"} {
		r, err := plan.Decide(inv, v1alpha1.Distribution{}, target, "kustomize", "v1")
		if err != nil { t.Fatal(err) }
		tree, err := bundle.Render(r, bundle.Options{})
		if err != nil { t.Fatal(err) }
		objs, err := verify.Build(tree, target, "kustomize")
		if err != nil { t.Fatal(err) }
		t.Log(target, len(objs))
		r.Format = "helm"
		htree, err := bundle.Render(r, bundle.Options{})
		if err != nil { t.Fatal(err) }
		hobjs, err := verify.Build(htree, target, "helm")
		if err != nil { t.Fatal(err) }
		for _, d := range verify.Diff(objs, hobjs) { t.Error(d) }
		f, _ := os.Create("/tmp/bundle-scratch/" + string(target) + ".yaml")
		for _, o := range objs { b, _ := yaml.Marshal(o.Fields); fmt.Fprintf(f, "--- # %s\n%s", o.Plane, b) }
	}
}
