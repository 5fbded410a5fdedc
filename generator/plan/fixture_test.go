package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// knownFact is a fact that the cloud gives.
func knownFact[T any](v T) v1alpha1.Fact[T] {
	return v1alpha1.Fact[T]{State: v1alpha1.Known, Value: v}
}

func without[T any](s v1alpha1.State) v1alpha1.Fact[T] {
	return v1alpha1.Fact[T]{State: s, Reason: "a reason"}
}

func zonesNamed(names ...string) v1alpha1.Fact[[]v1alpha1.Zone] {
	zones := []v1alpha1.Zone{}
	for _, n := range names {
		zones = append(zones, v1alpha1.Zone{Name: n, Available: true})
	}
	return knownFact(zones)
}

func volumeType(name string) v1alpha1.VolumeType {
	return v1alpha1.VolumeType{ID: "id-of-" + name, Name: name, Public: true}
}

// cloudOf is a cloud with two zones on either side and these types, the first of which is the default.
func cloudOf(names ...string) v1alpha1.Inventory {
	inv := v1alpha1.Inventory{
		Cloud: v1alpha1.Cloud{AuthURL: "https://keystone.example/v3", Region: "RegionOne", ProjectID: "p1"},
		Services: knownFact(map[string]v1alpha1.Service{
			"identity":      {Present: true, Endpoint: "https://keystone.example/v3", Port: 443},
			"compute":       {Present: true, MinMicroversion: "2.1", MaxMicroversion: "2.93", Endpoint: "https://nova.example:8774/v2.1", Port: 8774},
			"block-storage": {Present: true, MinMicroversion: "3.0", MaxMicroversion: "3.70", Endpoint: "https://cinder.example:8776/v3", Port: 8776},
		}),
		Zones:             v1alpha1.Zones{Compute: zonesNamed("az1", "az2"), Volume: zonesNamed("az1", "az2")},
		DefaultVolumeType: knownFact(""),
	}
	types := []v1alpha1.VolumeType{}
	for i, n := range names {
		if i == 0 {
			inv.DefaultVolumeType = knownFact(n)
		}
		types = append(types, volumeType(n))
	}
	inv.VolumeTypes = knownFact(types)
	return inv
}

// configured is a Distribution as a person would write it.
func configured(t *testing.T, spec string) v1alpha1.Distribution {
	t.Helper()
	d, err := v1alpha1.DecodeDistribution("test.yaml", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decide makes the decisions. The warning of the driver image, which comes with every default configuration, is not in the result.
func decide(t *testing.T, inv v1alpha1.Inventory, spec string, target v1alpha1.Target) Result {
	t.Helper()
	r, err := Decide(inv, configured(t, spec), target, v1alpha1.Kustomize, "test")
	if err != nil {
		t.Fatal(err)
	}
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return strings.Contains(w, unpublished) })
	return r
}

func classNamed(t *testing.T, r Result, name string) StorageClass {
	t.Helper()
	for _, c := range r.StorageClasses {
		if c.Value.Name == name {
			return c.Value
		}
	}
	t.Fatalf("there is no class %q", name)
	return StorageClass{}
}

func classNames(r Result) []string {
	var names []string
	for _, c := range r.StorageClasses {
		names = append(names, c.Value.Name)
	}
	return names
}
