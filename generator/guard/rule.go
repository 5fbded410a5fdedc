package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// kinds are the objects that have a decision each, by the prefix of its id, with the fields that Kubernetes refuses to change. Source:
// ValidateStorageClassUpdate, ValidateVolumeAttributesClassUpdate and ValidateCSIDriverUpdate in k8s.io/kubernetes.
var kinds = []struct {
	prefix, kind string
	immutable    []string
}{
	{plan.ClassID, "StorageClass", []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}},
	{plan.AttributesClassID, "VolumeAttributesClass", []string{"driverName", "parameters"}},
	{plan.IDCSIDriver, "CSIDriver", []string{"attachRequired", "volumeLifecycleModes"}},
}

// rule refuses every change of one decision.
type rule struct {
	accept, consequence string
	pin                 func(c *comparison, was any) any
}

const otherNamespace = "objects in the old namespace stay and run beside the new ones, and the new namespace needs the Secret with the credentials too"

var rules = map[string]rule{
	plan.IDDriverName: {DriverName, "existing volumes belong to the driver of the old name, and a driver of another name cannot mount them", driverPin},
	plan.IDClusterID: {
		ClusterID, "existing volumes carry the old cluster ID, and reports of orphans would list them as those of another cluster",
		func(_ *comparison, was any) any { return m{"clusterID": was} },
	},
	plan.IDControllerNamespace: {Namespace, otherNamespace, func(_ *comparison, was any) any { return m{"namespaces": m{"controller": was}} }},
	plan.IDNodeNamespace:       {Namespace, otherNamespace, func(_ *comparison, was any) any { return m{"namespaces": m{"node": was}} }},
	plan.IDTopology: {
		Topology, "existing volumes and nodes keep the zones of the old setting, so pods with existing volumes may not be scheduled",
		func(_ *comparison, was any) any { return m{"topology": m{"mode": mode(was)}} },
	},
}

func mode(enabled any) string {
	if enabled == true {
		return v1alpha1.Enabled
	}
	return v1alpha1.Disabled
}

func driverPin(c *comparison, was any) any {
	switch {
	case c.next.Target != v1alpha1.Vanilla && was == contract.DriverName:
		return m{"openshift": m{"coexistence": v1alpha1.Adopt}}
	case c.next.Target != v1alpha1.Vanilla && was == plan.OwnDriverName:
		return m{"openshift": m{"coexistence": v1alpha1.SideBySide}}
	}
	return m{"driver": m{"name": was}}
}

// guard marks a change that generate refuses.
func (c *comparison) guard(change *v1alpha1.Change, was, is any) {
	id := change.Decision
	if r, guarded := rules[id]; guarded && was != nil {
		change.Accept, change.Refused, change.Pin = r.accept, r.consequence, r.pin(c, was)
		return
	}
	if strings.HasPrefix(id, plan.IDSnapshotClass) {
		c.guardSnapshots(change, was, is)
		return
	}
	for _, k := range kinds {
		name, found := strings.CutPrefix(id, k.prefix)
		switch {
		case !found:
		case change.Field == "" && is == nil:
			change.Accept, change.Refused = ClassRemoved, "claims that name "+k.kind+" "+name+" would find no class"
			change.Pin = c.configured("attributesClasses", name)
		case slices.Contains(k.immutable, change.Field):
			c.guardImmutable(change, k.kind, name)
		}
	}
}

// guardSnapshots: without their class and the sidecar, existing VolumeSnapshots can be neither restored nor deleted.
func (c *comparison) guardSnapshots(change *v1alpha1.Change, was, is any) {
	off := change.Field == "enabled" && was == true
	renamed := change.Field == "name" && was != nil
	gone := change.Field == "" && is == nil
	if !off && !renamed && !gone {
		return
	}
	change.Accept = Snapshots
	change.Refused = "existing VolumeSnapshots lose their class and the snapshotter sidecar, so that nobody can restore or delete them"
	if off && change.Decision == plan.IDSnapshotClass {
		change.Pin = m{"snapshots": m{"enabled": true}}
	}
}

// configured is an entry of the old configuration, as a pin.
func (c *comparison) configured(key, name string) any {
	config, _ := plainJSON(c.old.Config).(map[string]any)
	entries, _ := config[key].(map[string]any)
	if entry, found := entries[name]; found {
		return m{key: m{name: entry}}
	}
	return nil
}

// guardImmutable refuses what Kubernetes cannot change in place. A class that names its type by the ID instead of a name that is gone is
// what a person pasted from an earlier refusal.
func (c *comparison) guardImmutable(change *v1alpha1.Change, kind, name string) {
	if kind == "StorageClass" && change.Field == "parameters" && c.pinnedByID(change.Decision) {
		return
	}
	change.Accept = ClassImmutable
	change.Refused = fmt.Sprintf("Kubernetes cannot change %s of a %s in place, so the object must be deleted before the bundle is applied", change.Field, kind)
	switch kind {
	case "StorageClass":
		change.Pin = c.classPin(name)
	case "VolumeAttributesClass":
		change.Pin = c.configured("attributesClasses", name)
	}
}

// pinnedByID says whether the parameters of a class differ in nothing but the type, which is now the ID of the same type.
func (c *comparison) pinnedByID(id string) bool {
	was, is := classOf(c.was[id]), classOf(c.is[id])
	return was.typeID != "" && typeOf(is.fields) == was.typeID && equal(withType(was.fields["parameters"], was.typeID), is.fields["parameters"])
}

// classPin keeps a class as it was: as an override of its type where the type made it, else as an extra class.
func (c *comparison) classPin(name string) any {
	id := plan.ClassID + name
	was, is := classOf(c.was[id]), classOf(c.is[id])
	if was.fields["provisioner"] != is.fields["provisioner"] {
		return nil // the driver name is what must be pinned
	}
	fromConfig := c.is[id].Source == string(plan.FromConfig)
	switch {
	case fromConfig:
		return m{"storageClasses": m{"extra": []any{pinned(name, was.fields)}}}
	case typeOf(was.fields) != typeOf(is.fields):
		return nil // the class of the type has the name that an extra class would need
	}
	override := pinned(name, was.fields)
	delete(override, "name")
	parameters, _ := override["parameters"].(map[string]any)
	rest := maps.Clone(parameters)
	delete(rest, contract.ParameterType)
	delete(override, "parameters")
	if len(rest) > 0 {
		override["parameters"] = rest
	}
	return m{"storageClasses": m{"overrides": m{typeOf(was.fields): override}}}
}
