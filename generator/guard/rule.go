package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// kinds are the objects that have a decision each, by the prefix of its id, with the fields that Kubernetes refuses to change. Source:
// ValidateStorageClassUpdate, ValidateVolumeAttributesClassUpdate and ValidateCSIDriverUpdate in k8s.io/kubernetes.
var kinds = []struct {
	prefix, kind string
	immutable    []string
}{
	{plan.ClassID, "StorageClass", []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}},
	{plan.AttributesClassID, "VolumeAttributesClass", []string{"driverName", "parameters"}},
	{plan.SnapshotClassID, "VolumeSnapshotClass", nil},
	{plan.IDs.CSIDriver.ID, "CSIDriver", []string{"attachRequired", "volumeLifecycleModes"}},
}

// rule refuses every change of one decision.
type rule struct {
	accept, consequence string
	pin                 func(c *comparison, change *v1alpha1.Change, was any)
}

const otherNamespace = "objects in the old namespace stay and run beside the new ones, and the new namespace needs the Secret with the credentials too"

var rules = map[string]rule{
	plan.IDs.Driver.ID: {DriverName, "existing volumes belong to the driver of the old name, and a driver of another name cannot mount them", (*comparison).pinDriver},
	plan.IDs.ClusterID.ID: {
		ClusterID, "existing volumes carry the old cluster ID, and reports of orphans would list them as those of another cluster",
		(*comparison).pinClusterID,
	},
	plan.IDs.ControllerNamespace.ID: {Namespace, otherNamespace, pinNamespace("controller")},
	plan.IDs.NodeNamespace.ID:       {Namespace, otherNamespace, pinNamespace("node")},
	plan.IDs.Topology.ID: {
		Topology, "existing volumes and nodes keep the zones of the old setting, so pods with existing volumes may not be scheduled",
		(*comparison).pinTopology,
	},
}

func pinNamespace(role string) func(*comparison, *v1alpha1.Change, any) {
	return func(c *comparison, change *v1alpha1.Change, was any) {
		if c.next.Target == v1alpha1.Vanilla || !slices.Contains(plan.Unconstrained, fmt.Sprint(was)) { // plan refuses those on OpenShift
			change.Pin = m{"namespaces": m{role: was}}
		}
	}
}

func (c *comparison) guard(change *v1alpha1.Change, was, is any) {
	id := change.Decision
	if r, guarded := rules[id]; guarded && was != nil {
		change.Accept, change.Refused = r.accept, r.consequence
		r.pin(c, change, was)
		return
	}
	if id == protection {
		c.guardProtection(change, was, is)
		return
	}
	if id == plan.ServerMetadataID {
		c.guardServers(change)
		return
	}
	if chosen := c.next.Config.StorageClasses.Default; id == plan.IDs.DefaultClass.ID && is == "" && was != "" && chosen != v1alpha1.Auto && chosen != v1alpha1.None {
		change.Accept, change.Refused = ClassRemoved, "claims that name no class would find none"
		c.pinDefault(change, c.was.DefaultClass.Value)
		return
	}
	if id == plan.IDs.SnapshotClass.ID || id == plan.IDs.BackupClass.ID {
		c.guardSnapshots(change, was, is)
		return
	}
	for _, k := range kinds {
		name, found := strings.CutPrefix(id, k.prefix)
		switch {
		case !found:
		case change.Field == "" && is == nil && k.prefix == plan.SnapshotClassID:
			change.Accept, change.Refused = ClassRemoved, "VolumeSnapshots that name VolumeSnapshotClass "+name+" would find no class"
			c.pinSnapshotClass(change, name)
		case change.Field == "" && is == nil:
			change.Accept, change.Refused = ClassRemoved, "claims that name "+k.kind+" "+name+" would find no class"
			c.pinAttributesClass(change, name)
		case slices.Contains(k.immutable, change.Field):
			c.guardImmutable(change, k.kind, name)
		}
	}
}

const protection = "driver.protectOtherClusters"

// guardProtection: a bundle of an earlier version keeps its meaning until a person asks for the new default.
func (c *comparison) guardProtection(change *v1alpha1.Change, was, is any) {
	if is != v1alpha1.Strict || c.is.by[protection].Source == string(plan.FromConfig) {
		return
	}
	change.Accept = Protection
	change.Refused = "the driver then serves no volume without the mark of a cluster, such as a static volume; its error prints the command that marks one"
	keep := v1alpha1.Disabled
	if was == true {
		keep = v1alpha1.Enabled
	}
	change.Pin = m{"driver": m{"protectOtherClusters": keep}}
}

// guardServers: the servers of a strict bundle of an earlier version may be older than the tag that the new default asks for.
func (c *comparison) guardServers(change *v1alpha1.Change) {
	was, is := c.was.Setting(plan.ServerMetadataID), c.is.Setting(plan.ServerMetadataID)
	had, _ := was.Value.Value.(map[string]string)
	if len(had) == 0 && is.Source == plan.Default && c.was.Setting(protection).Value.Value == v1alpha1.Strict {
		change.Accept = Protection
		change.Refused = "servers without that tag then get and lose no volumes; the error of the driver prints the command that marks a server"
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
	if renamed {
		c.guardRenamedClass(change, was, is)
		return
	}
	change.Accept = Snapshots
	change.Refused = "existing VolumeSnapshots lose their class and the snapshotter sidecar, so that nobody can restore or delete them"
	switch on := c.next.Config.Snapshots.Enabled; {
	case off && change.Decision == plan.IDs.SnapshotClass.ID:
		change.Pin = m{"snapshots": m{"enabled": true}}
	case off && (on == nil || *on): // else the class for backups returns with snapshots
		change.Pin = m{"snapshots": m{"backup": v1alpha1.Enabled}}
	}
}

// guardRenamedClass: the old class stays in the cluster, where nothing looks after it any more. A configuration that names it keeps it in the
// bundle, beside the new one. With another driver name the class is another in any case, and the refusal of that name is enough.
func (c *comparison) guardRenamedClass(change *v1alpha1.Change, was, is any) {
	if _, kept := c.next.Config.Snapshots.Classes[fmt.Sprint(was)]; kept || c.was.Driver.Value != c.is.Driver.Value {
		return
	}
	change.Accept = ClassRemoved
	change.Refused = fmt.Sprintf("the bundle has VolumeSnapshotClass %v in place of %v, which stays in the cluster. If both are the default of the driver, a VolumeSnapshot "+
		"without a class fails; kubectl annotate --overwrite volumesnapshotclass %s snapshot.storage.kubernetes.io/is-default-class=false", is, was, shell.Name(fmt.Sprint(was), "NAME"))
	class := m{}
	if change.Decision == plan.IDs.BackupClass.ID {
		class["parameters"] = m{contract.ParameterType: string(contract.KindBackup)}
	}
	change.Pin = m{"snapshots": m{"classes": m{fmt.Sprint(was): class}}}
}

// guardImmutable refuses what Kubernetes cannot change in place. A class that names its type by the ID instead of a name that is gone is
// what a person pasted from an earlier refusal.
func (c *comparison) guardImmutable(change *v1alpha1.Change, kind, name string) {
	if change.Field == "parameters" && c.pinnedByID(change.Decision) {
		return
	}
	change.Accept = ClassImmutable
	change.Refused = fmt.Sprintf("Kubernetes cannot change %s of a %s in place, so the object must be deleted before the bundle is applied", change.Field, kind)
	switch kind {
	case "StorageClass":
		c.pinClass(change, name)
	case "VolumeAttributesClass":
		c.pinAttributesClass(change, name)
	}
}

// pinnedByID says whether the parameters of a class differ in nothing but the type, which is now the ID of the same type.
func (c *comparison) pinnedByID(id string) bool {
	was, _ := typedOf(c.was.by[id].Value)
	is, _ := typedOf(c.is.by[id].Value)
	return was.volumeType.ID != "" && is.parameter == was.volumeType.ID && maps.Equal(withType(c.was.by[id].Value, is.parameter), withType(c.is.by[id].Value, is.parameter))
}

func withType(value any, id string) map[string]string {
	var with map[string]string
	switch v := value.(type) {
	case plan.StorageClass:
		with = maps.Clone(v.Parameters)
	case plan.AttributesClass:
		with = maps.Clone(v.Parameters)
	}
	if with == nil {
		with = map[string]string{}
	}
	with[contract.ParameterType] = id
	return with
}
