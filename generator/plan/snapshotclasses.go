package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// defaultSnapshotClass is the configured class that is the default of the driver; empty for none.
func (d *decider) defaultSnapshotClass() string {
	for _, name := range slices.Sorted(maps.Keys(d.spec.Snapshots.Classes)) {
		if d.spec.Snapshots.Classes[name].Default {
			return name
		}
	}
	return ""
}

func (d *decider) snapshotClasses(driver string, own Decision[SnapshotClass]) []Decision[FurtherSnapshotClass] {
	given := d.spec.Snapshots.Classes
	if len(given) == 0 {
		return nil
	}
	if !*d.spec.Snapshots.Enabled {
		d.problem("spec.snapshots.classes: the classes need the snapshotter sidecar, and spec.snapshots.enabled is false")
	}
	var classes []Decision[FurtherSnapshotClass]
	var defaults []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		classes = append(classes, d.furtherSnapshotClass(driver, name, given[name], own))
		if given[name].Default {
			defaults = append(defaults, name)
		}
	}
	switch {
	case len(defaults) > 1:
		d.problem("spec.snapshots.classes: %s are default classes of one driver; keep one, or each VolumeSnapshot without a class fails", strings.Join(defaults, ", "))
	case len(defaults) == 1 && d.openShift() && !d.sideBySide():
		d.warn("spec.snapshots.classes.%s.default: OpenShift's own class standard-csi is a default class of this driver too. With two, each VolumeSnapshot without a class fails: "+
			"remove the annotation from standard-csi, or the key default", defaults[0])
	}
	return classes
}

func (d *decider) furtherSnapshotClass(driver, name string, c v1alpha1.SnapshotClass, own Decision[SnapshotClass]) Decision[FurtherSnapshotClass] {
	path := "spec.snapshots.classes." + name
	d.checkClassName("spec.snapshots.classes", name)
	if snapshots, backups := v1alpha1.SnapshotClassNames(driver); name == snapshots || name == backups {
		d.problem("%s: the bundle has a class of this name already; choose another name", path)
	}
	d.checkClassAnnotations(path, c.Annotations)
	_, unknown, err := contract.ParseSnapshotClass(c.Parameters)
	d.checkParameters(path, unknown, contract.SnapshotClassKeys, err)
	d.checkSecrets(path, c.Parameters)
	decision := Decision[FurtherSnapshotClass]{Source: FromConfig, Reason: path + " asks for it"}
	decision.Value = FurtherSnapshotClass{Name: name, DeletionPolicy: cmp.Or(c.DeletionPolicy, "Delete"), Default: c.Default, Parameters: c.Parameters, Annotations: c.Annotations}
	if _, given := c.Parameters[contract.ParameterForce]; !given && !own.Value.InUse {
		decision.Value.Parameters = merged(c.Parameters, map[string]string{contract.ParameterForce: "true"})
		decision.Reason += "; the cloud needs force for volumes in use"
		decision.Facts = own.Facts
	}
	return decision
}
