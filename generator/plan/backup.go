package plan

import "github.com/cinder-csi/cinder-csi/generator/v1alpha1"

// backupClass is the VolumeSnapshotClass for backups. A member cannot ask whether cinder-backup runs: Cinder answers a list of backups
// without it. So the decision rests on the right to list backups, and its reason says what that does not prove.
func (d *decider) backupClass(driver string) Decision[BackupClass] {
	_, name := v1alpha1.SnapshotClassNames(driver)
	class := BackupClass{Enabled: true, Name: name}
	mode := d.spec.Snapshots.Backup
	switch {
	case mode == v1alpha1.Disabled:
		return Decision[BackupClass]{Source: FromConfig, Reason: "spec.snapshots.backup is disabled"}
	case !*d.spec.Snapshots.Enabled:
		if mode == v1alpha1.Enabled {
			d.problem("spec.snapshots.backup: backups need the snapshotter sidecar, and spec.snapshots.enabled is false")
		}
		return Decision[BackupClass]{Source: Default, Reason: "backups are made through snapshots, which are off"}
	case mode == v1alpha1.Enabled:
		switch d.inv.Backup.State {
		case v1alpha1.Denied: // decides nothing, so no bundle says it
			d.notice("spec.snapshots.backup is enabled, and nobody has seen whether the project may list backups: %s", missingRight(backupFact, d.inv.Backup.Reason))
		case v1alpha1.Unsupported:
			d.fail("spec.snapshots.backup is enabled, but the cloud does not list backups (%s): VolumeSnapshots of class %s may fail", d.inv.Backup.Reason, name)
		}
		return Decision[BackupClass]{Value: class, Source: FromConfig, Reason: "spec.snapshots.backup is enabled"}
	case d.inv.Backup.State == "":
		return Decision[BackupClass]{Source: Inferred, Reason: "the inventory is older than the question for backups"}
	case !known(d, backupFact, d.inv.Backup):
		if d.inv.Backup.State == v1alpha1.Denied {
			d.warn("there is no class for backups: %s. With spec.snapshots.backup: enabled there is one", missingRight(backupFact, d.inv.Backup.Reason))
		}
		return Decision[BackupClass]{Source: Inferred, Facts: []v1alpha1.NamedFact{stateOf(backupFact, d.inv.Backup)}, Reason: "the cloud does not let this project list backups"}
	}
	// A quota is for the terminal alone: it changes from day to day.
	if quota, counted := d.inv.Quota.Value["backups"]; d.inv.Quota.State == v1alpha1.Known && counted && quota.Limit == 0 {
		d.notice("the quota of this project allows no backup, so VolumeSnapshots of class %s fail: ask the operator of the cloud, or set spec.snapshots.backup: disabled", name)
	}
	return Decision[BackupClass]{
		Value: class, Source: Inferred, Facts: []v1alpha1.NamedFact{{Name: backupFact, Value: string(v1alpha1.Known)}},
		Reason: "the cloud lists backups for this project; only an administrator sees whether a cinder-backup service makes them",
	}
}
