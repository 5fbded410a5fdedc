package snapshot

import (
	"cmp"
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// Cinder's backup driver for Ceph keeps the data of each backup of a snapshot in an image whose name has the volume alone. That is so from
// Victoria to Debian sid (cinder/backup/drivers/ceph.py), and it was seen on Epoxy. A second such backup of the volume fails. The delete of the
// failed one deletes the image, and then nobody can restore the first, which Cinder still shows as available. A user knows such a store by a
// full backup without objects.

// backups are the backups of one volume, without what nobody asks for: a cloud chooses how much that is.
type backups []volume.Snapshot

// maxBackups is how many backups of one volume the driver reads. Each call keeps them, so they count in the memory of the driver.
const maxBackups = 5000

func (s *Service) backupsOf(ctx context.Context, id volume.ID) (all backups, err error) {
	var nonsense error
	err = paging.Walk(maxBackups, func(marker string) ([]volume.Snapshot, bool, error) {
		page, more, err := s.cloud.Backups(ctx, volume.SnapshotPage{Volume: id, Marker: volume.SnapshotID(marker)})
		return page, more, volume.ListChanged(err, marker)
	}, func(b volume.Snapshot) string { return string(b.ID) }, func(page []volume.Snapshot) bool {
		for _, b := range page {
			if !b.ID.Exists() || b.From != "" && !b.From.Exists() {
				nonsense = volume.Errorf(volume.Unavailable, "Cinder lists a backup of volume %s whose ID, or that of its snapshot, is not a UUID; report this to the cloud administrator", id).Cause(cause.CloudAnswer).Op("list")
				return false
			}
			all = append(all, volume.Snapshot{
				ID: b.ID, Status: b.Status.Short(), From: b.From, Backup: b.Backup, Objects: b.Objects, Incremental: b.Incremental, DataAt: b.DataAt,
			})
		}
		return true
	})
	return all, cmp.Or(nonsense, observe.EndlessList(err, "the backups of volume "+string(id)))
}

// full returns the full backup that b rests on; the zero Snapshot if there is none. Cinder bases an incremental backup on the one with the latest
// data before, so that is the latest full one before.
func (all backups) full(b volume.Snapshot) (full volume.Snapshot) {
	for _, f := range all {
		if !f.Incremental && f.Ready() && !f.DataAt.After(b.DataAt) && (full.ID == "" || f.DataAt.After(full.DataAt)) {
			full = f
		}
	}
	return full
}

// inCeph reports whether b is in Ceph; known is false if nothing proves it. That of a backup that Cinder is creating shows later, but an
// incremental one is in the store of its full one.
func (all backups) inCeph(b volume.Snapshot) (is, known bool) {
	if b.Incremental && b.MayBeInCeph() {
		if b = all.full(b); b.ID == "" {
			return false, false
		}
	}
	return b.InCeph(), b.Ready() || !b.MayBeInCeph()
}

// sharing returns a backup of the volume whose data another backup of a snapshot would share; the zero Snapshot if there is none. It prefers one
// that proves to be in Ceph, and then proven is true.
func (s *Service) sharing(ctx context.Context, id volume.ID, except volume.SnapshotID) (found volume.Snapshot, proven bool, err error) {
	all, err := s.backupsOf(ctx, id)
	if err != nil {
		return volume.Snapshot{}, false, err
	}
	for _, b := range all {
		switch is, known := all.inCeph(b); {
		case b.ID == except || !b.Alive() || b.From == "":
		case is && b.Ready():
			found, proven = b, true
		case (is || !known) && found.ID == "":
			found = b
		}
	}
	return found, proven, nil
}

// checkStoreTakesAnother refuses a backup that would fail and that nobody could delete without harm. A backup that Cinder is creating has no
// objects yet in any store, so it decides nothing.
func (s *Service) checkStoreTakesAnother(ctx context.Context, spec Spec) error {
	other, proven, err := s.sharing(ctx, spec.Volume, "")
	if err != nil || !proven {
		return err
	}
	if _, err := s.cloud.Volume(ctx, spec.Volume); err != nil { // the list does not say whose the volume is, and the refusal names a backup of it
		return volume.WithOp(err, "snapshot")
	}
	return s.refuseBackup(ctx, spec, volume.Errorf(volume.Conflict, "volume %s already has backup %s, and the backup store of this cloud (Ceph) keeps one backup of a snapshot for each volume. "+
		"Delete that backup first, or use a class with type: snapshot", spec.Volume, other.ID).Cause(cause.BackupShared).Op("snapshot"))
}

// refuseBackup deletes what an earlier call made for a backup that the driver now refuses, and returns the refusal.
func (s *Service) refuseBackup(ctx context.Context, spec Spec, refusal error) error {
	if err := s.deleteTemporarySnapshots(ctx, volume.Snapshot{Name: spec.Name, Volume: spec.Volume}); err != nil {
		return volume.AfterWrite(err)
	}
	return refusal
}

// sendDeleteBackup deletes b, unless that would delete the data of another backup.
func (s *Service) sendDeleteBackup(ctx context.Context, b volume.Snapshot) error {
	if b.Status == volume.ErrorStatus && b.From != "" {
		other, proven, err := s.sharing(ctx, b.Volume, b.ID)
		switch {
		case err != nil:
			return err
		case proven:
			return volume.Errorf(volume.Conflict, "backup %s failed, and its delete could destroy the data of backup %s of the same volume, as Cinder does with Ceph. "+
				"The driver leaves it in place. Delete backup %s first, if you do not need it", b.ID, other.ID, other.ID).Cause(cause.BackupShared).Op("delete")
		case other.ID != "":
			return volume.Errorf(volume.Busy, "backup %s failed, and Cinder is creating backup %s of the same volume, whose data a delete could destroy; the driver retries", b.ID, other.ID).Op("delete")
		}
	}
	if err := s.backups.PastLag(ctx, string(b.ID), func() error { return s.cloud.DeleteBackup(ctx, b.ID) }); err != nil {
		return s.explainBackupRefusal(ctx, b.ID, err)
	}
	return nil
}
