package report

import (
	"maps"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

type factGap struct {
	Name   string
	State  v1alpha1.State
	Reason string
}

func factGaps(inv v1alpha1.Inventory) []factGap {
	var found []factGap
	add := func(name string, state v1alpha1.State, reason string) {
		if state != v1alpha1.Known {
			found = append(found, factGap{name, state, reason})
		}
	}
	add("services", inv.Services.State, inv.Services.Reason)
	for _, name := range slices.Sorted(maps.Keys(inv.Services.Value)) {
		versions := inv.VersionsOf(name)
		add("versions of "+name, versions.State, versions.Reason)
	}
	add("compute zones", inv.Zones.Compute.State, inv.Zones.Compute.Reason)
	add("volume zones", inv.Zones.Volume.State, inv.Zones.Volume.Reason)
	add("volume types", inv.VolumeTypes.State, inv.VolumeTypes.Reason)
	add("default volume type", inv.DefaultVolumeType.State, inv.DefaultVolumeType.Reason)
	add("limits", inv.Limits.State, inv.Limits.Reason)
	add("quota", inv.Quota.State, inv.Quota.Reason)
	add("group types", inv.GroupTypes.State, inv.GroupTypes.Reason)
	if inv.Backup.State != "" { // an inventory that was saved before it was asked for
		add("backups", inv.Backup.State, inv.Backup.Reason)
	}
	for _, v := range inv.VolumeTypes.Value {
		if v.Encryption.State != v1alpha1.Known {
			add("encryption of volume types", v.Encryption.State, v.Encryption.Reason)
			break // every type has the same reason
		}
	}
	return found
}
