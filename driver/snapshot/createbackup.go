package snapshot

import (
	"context"
	"maps"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// BackupSpec describes what a backup has besides the fields of a Spec (Cinder API reference, "Create a backup").
type BackupSpec struct {
	// Zone is the zone of the cinder-backup service that creates the backup; empty means any zone.
	Zone string
	// Incremental asks for a backup of what changed since the latest backup of the volume. Without a usable one the backup is a full one.
	Incremental bool
	// PerGiB is how long the backup of one GiB may take before Create reports it; 0 means no limit.
	PerGiB time.Duration
}

// backupBaseTime is how long the backup of a volume of any size may take, besides its PerGiB; upstream has the same value.
const backupBaseTime = 30 * time.Second

// findOrCreateBackup creates a backup from a temporary snapshot of the same name, as upstream does. During a backup of the volume itself,
// Cinder would neither attach nor detach it. Create returns the backup only after it has deleted the temporary snapshot: after a success no
// further call comes. Each call continues from what Cinder shows.
func (s *Service) findOrCreateBackup(ctx context.Context, spec Spec) (volume.Snapshot, error) {
	found, created, err := s.backups.findOrCreate(ctx, spec.Name, func() (volume.SnapshotID, error) { return s.createBackup(ctx, spec) })
	if err != nil {
		return volume.Snapshot{}, err
	}
	if err := spec.checkTime(found[0]); err != nil {
		return volume.Snapshot{}, err
	}
	b, err := s.useOldest(ctx, s.backups, found, created, func(b volume.Snapshot) error { return spec.checkVolume("backup", b) })
	if err != nil {
		return volume.Snapshot{}, err
	}
	if err := s.cleanUp(ctx, b); err != nil {
		return volume.Snapshot{}, err
	}
	if err := s.refuseTruncated(ctx, b); err != nil {
		return volume.Snapshot{}, err
	}
	return b, nil
}

// checkTime reports a backup that takes longer than its class allows. The error is retryable, since Cinder may still complete the backup.
func (spec Spec) checkTime(b volume.Snapshot) error {
	if spec.Backup.PerGiB == 0 || !spec.ofVolume(b) || b.Status.SnapshotMeaning().Create != volume.Wait {
		return nil
	}
	allowed := backupBaseTime + spec.Backup.PerGiB*time.Duration(b.Size.RoundUp())
	age := time.Since(b.CreatedAt)
	if age <= allowed {
		return nil
	}
	return volume.AfterWrite(volume.Errorf(volume.DeadlineExceeded, "backup %s of volume %s (%s) has taken %s, longer than the %s that the VolumeSnapshotClass allows. "+
		"Cinder continues; if the backup is not stuck, increase %s", b.ID, b.Volume, b.Size, age.Round(time.Second), allowed, contract.ParameterBackupTime).Cause(cause.BackupSlow).Op("snapshot"))
}

// cleanUp deletes the temporary snapshot of a completed backup. The backup can be used even if Cinder never deletes that snapshot.
func (s *Service) cleanUp(ctx context.Context, b volume.Snapshot) error {
	err := s.deleteTemporarySnapshots(ctx, b)
	switch volume.KindOf(err) {
	case volume.Conflict, volume.Failed:
		s.log.WarnContext(ctx, "the temporary snapshot of a backup stays; delete it by hand", "backup", b.ID, "name", b.Name, "error", err)
		return nil
	}
	return volume.AfterWrite(err)
}

// createBackup sends the create request once the temporary snapshot is available.
func (s *Service) createBackup(ctx context.Context, spec Spec) (volume.SnapshotID, error) {
	switch err := s.checkNotTruncated(ctx, spec.Volume); {
	case volume.Is(err, volume.Conflict):
		return "", s.refuseBackup(ctx, spec, err)
	case err != nil:
		return "", err
	}
	if err := s.checkStoreTakesAnother(ctx, spec); err != nil {
		return "", err
	}
	temporary, err := s.temporarySnapshot(ctx, spec)
	if err != nil {
		return "", err
	}
	incremental, err := s.canBeIncremental(ctx, spec, temporary)
	if err != nil {
		return "", volume.AfterWrite(err)
	}
	metadata := s.owner.Metadata(spec.Name, spec.Metadata)
	metadata[contract.MetadataType], metadata[contract.MetadataSent] = string(contract.KindBackup), idempotent.FormatSent(time.Now())
	o := volume.BackupOptions{
		Name: spec.Name, Volume: spec.Volume, Snapshot: temporary.ID, Zone: spec.Backup.Zone, Incremental: incremental, Description: contract.Description, Metadata: metadata,
	}
	b, err := s.backups.Send(ctx, spec.Name, s.locks.Share("snapshot "+spec.Name, "create"), func(ctx context.Context) (volume.Snapshot, error) {
		id, err := s.cloud.CreateBackup(ctx, o)
		return volume.Snapshot{ID: id}, err
	})
	switch {
	case idempotent.Final(err):
		return "", s.discardTemporary(ctx, temporary, err)
	case err != nil: // a retry uses the temporary snapshot
		return "", volume.AfterWrite(err)
	}
	return b.ID, nil
}

// discardTemporary deletes the temporary snapshot of a backup that Cinder refused to create, so that nothing is left after the refusal.
func (s *Service) discardTemporary(ctx context.Context, temporary volume.Snapshot, refusal error) error {
	if !s.createdForName(temporary) {
		return volume.AfterWrite(refusal)
	}
	if err := s.snapshots.Discard(ctx, temporary, "Cinder refused to create a backup of it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(refusal), "%w; the driver could not delete the temporary snapshot %s either: %v", refusal, temporary.ID, err))
	}
	return refusal
}

// temporarySnapshot finds or creates the snapshot for a backup, and returns it once it can be backed up.
func (s *Service) temporarySnapshot(ctx context.Context, spec Spec) (volume.Snapshot, error) {
	found, created, err := s.snapshots.findOrCreate(ctx, spec.Name, func() (volume.SnapshotID, error) {
		marked := spec
		marked.Metadata = map[string]string{}
		maps.Copy(marked.Metadata, spec.Metadata)
		marked.Metadata[contract.MetadataTemporary] = string(contract.KindBackup)
		return s.createSnapshot(ctx, marked)
	})
	if err != nil {
		return volume.Snapshot{}, err
	}
	return s.useOldest(ctx, s.snapshots, found, created, func(p volume.Snapshot) error {
		if err := spec.checkVolume("snapshot", p); err != nil {
			return err
		}
		switch {
		case !s.isTemporary(p):
			return volume.Errorf(volume.Incompatible, "snapshot %s already has the name %s; the request asks for a backup", p.ID, spec.Name).Cause(cause.CreateNameTaken).Op("snapshot")
		case p.Status.SnapshotMeaning().Create == volume.Proceed && !p.Ready():
			return volume.AfterWrite(volume.Errorf(volume.Busy, "temporary snapshot %s is in status %s: another call is creating a backup of it, and a retry waits for that backup", p.ID, p.Status).Op("snapshot"))
		}
		return nil
	})
}

// isTemporary reports whether p exists only for a backup. Those of this driver are marked. Those of upstream look like any other snapshot of
// upstream, but a request for a backup has no other snapshot of its name.
func (s *Service) isTemporary(p volume.Snapshot) bool {
	if p.Metadata[contract.MetadataTemporary] != "" {
		return s.createdForName(p)
	}
	_, requested := p.Metadata[contract.MetadataRequest]
	cluster, labelled := p.Metadata[contract.MetadataCluster]
	return labelled && !requested && cluster == s.owner.Cluster
}

// canBeIncremental decides whether Cinder can create the backup as an incremental one. Cinder bases it on the backup with the latest data
// before the snapshot, and refuses unless that backup is available (backup/api.py of Cinder 21). So after a failed one the backup is full.
func (s *Service) canBeIncremental(ctx context.Context, spec Spec, temporary volume.Snapshot) (bool, error) {
	if !spec.Backup.Incremental {
		return false, nil
	}
	base, err := s.latestBackup(ctx, spec.Volume, temporary.CreatedAt)
	if err != nil {
		return false, err
	}
	reason := ""
	switch {
	case base.ID == "":
		reason = "the volume has no backup"
	case base.Status.SnapshotMeaning().Source == volume.Proceed:
		return true, nil
	case base.Status.SnapshotMeaning().Source == volume.Refuse:
		reason = "the latest backup failed"
	default:
		return false, volume.Errorf(volume.Busy, "the incremental backup needs backup %s, which is in status %s; a retry creates it once that backup is available", base.ID, base.Status).Op("snapshot")
	}
	s.log.InfoContext(ctx, "creating a full backup although an incremental one is requested", "name", spec.Name, "volume", spec.Volume, "reason", reason, "backup", base.ID)
	return false, nil
}

// latestBackup returns the backup of a volume that has the latest data before end; the zero Snapshot where the volume has no backup.
func (s *Service) latestBackup(ctx context.Context, id volume.ID, end time.Time) (volume.Snapshot, error) {
	dataBefore := func(b volume.Snapshot) time.Time {
		if b.DataAt.Before(end) {
			return b.DataAt
		}
		return time.Time{} // Cinder compares later data as the oldest
	}
	all, err := s.backupsOf(ctx, id)
	var latest volume.Snapshot
	for _, b := range all {
		if latest.ID == "" || dataBefore(latest).Before(dataBefore(b)) {
			latest = b
		}
	}
	return latest, err
}

// backingUp is the status of a snapshot while Cinder creates a backup of it.
const backingUp volume.Status = "backing-up"

// deleteTemporarySnapshots deletes the temporary snapshots of a backup that is available or has failed. It finds those of this driver by
// name, and those of upstream only where the backup says that it was created from them.
func (s *Service) deleteTemporarySnapshots(ctx context.Context, b volume.Snapshot) error {
	if b.Name == "" {
		return nil
	}
	found, err := s.snapshots.Named(ctx, b.Name)
	if err != nil && !volume.Is(err, volume.NotOwned) { // what is another cluster's is no snapshot of this backup
		return err
	}
	for _, p := range found {
		if !s.isTemporary(p) || !s.createdForName(p) && p.ID != b.From {
			continue
		}
		if p.Status == backingUp && p.ID == b.From && b.Status.SnapshotMeaning().Create == volume.Refuse {
			return stuckBackingUp(b, p)
		}
		if err := s.snapshots.AwaitDeletable(ctx, p); err != nil {
			return err
		}
		if err := s.snapshots.Discard(ctx, p, "backup "+string(b.ID)+" does not need it any more"); err != nil {
			return volume.Errorf(volume.KindOf(err), "cannot delete the temporary snapshot %s of backup %s: %w", p.ID, b.ID, err).Op("snapshot")
		}
	}
	return nil
}

// stuckBackingUp reports a temporary snapshot whose status Cinder never resets, although its backup has failed. Cinder does that where its
// scheduler finds no cinder-backup service in the zone (scheduler/manager.py; seen on Zed and Epoxy). The volume then loses its
// status too, and only an administrator can reset it.
func stuckBackingUp(b, p volume.Snapshot) *volume.Error {
	if !b.Volume.Exists() || !p.ID.Exists() { // the cloud chooses them, and an administrator runs the commands
		b.Volume, p.ID = "VOLUME", "SNAPSHOT"
	}
	return volume.Errorf(volume.Failed, "its temporary snapshot %s stays in status %s, because Cinder did not reset it, and perhaps not volume %s either. An administrator must reset both "+
		"(openstack volume snapshot set --state available %s; openstack volume set --state available %s, or in-use if it is attached). Check that a cinder-backup service runs %s",
		p.ID, p.Status, b.Volume, p.ID, b.Volume, inZone(b)).Cause(cause.SnapshotRefused).Op("snapshot")
}
