package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// lasting are the fields that volumes depend on, or that Kubernetes never changes in place.
var lasting = map[string][]string{
	"StorageClass":          {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	"VolumeAttributesClass": {"driverName", "parameters"},
	"VolumeSnapshotClass":   {"driver", "deletionPolicy", "parameters"},
	"CSIDriver":             {"spec"},
}

// lastingDecisions are those whose change strands volumes, whatever objects hold them.
var lastingDecisions = []string{"driver.name", "clusterID", "namespaces.controller", "namespaces.node", "topology.enabled"}

// built is what the bundle in the directory holds of all this, by object and field. It builds the bundle, whose files alone count.
func (p pair) built(t *testing.T) map[string]any {
	t.Helper()
	dir, tree, _, err := readBundle(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := p.verified(p.dir, nil, tree, dir.Plan.Target, dir.Plan.Format)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, o := range objects {
		for _, field := range lasting[o.Kind()] {
			all[o.Kind()+"/"+o.Name()+" "+field] = o.Fields[field]
		}
	}
	for _, d := range dir.Plan.Decisions {
		if slices.Contains(lastingDecisions, d.ID) {
			all[d.ID] = d.Value
		}
	}
	return all
}

// checkKept compares the bundle with the one before it. No class changes or goes without a refusal. With the pin nothing that was refused is
// lost. A volume type that has another name now is named by its ID.
func (p pair) checkKept(t *testing.T, before map[string]any, refused []v1alpha1.Change) {
	t.Helper()
	after := p.built(t)
	for key, was := range before {
		object, field, _ := strings.Cut(key, " ")
		ofClass := strings.HasPrefix(object, "StorageClass/") || strings.HasPrefix(object, "VolumeAttributesClass/")
		concerned := slices.ContainsFunc(refused, func(c v1alpha1.Change) bool { return c.Decision == key || slices.Contains(c.Objects, object) })
		if !ofClass && !concerned {
			continue // generate may change these
		}
		if field == "parameters" {
			was = p.withIDs(t, was, after[key])
		}
		if diff := cmp.Diff(was, after[key]); diff != "" {
			t.Errorf("generate does not keep %s (-was +is):\n%s", key, diff)
		}
	}
}

// withIDs are the parameters of a class, with the ID of the volume type if they have that now.
func (p pair) withIDs(t *testing.T, was, is any) any {
	t.Helper()
	parameters, _ := was.(map[string]any)
	now, _ := is.(map[string]any)
	for _, offered := range p.inventory(t, p.before).VolumeTypes.Value {
		if parameters["type"] == offered.Name && now["type"] == offered.ID {
			parameters["type"] = offered.ID
		}
	}
	return was
}
