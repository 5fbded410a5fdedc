package snapshot

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// Cinder's backup driver for Ceph keeps the data of each backup of a snapshot in an image whose name has the volume alone. That is so from
// Victoria to Debian sid (cinder/backup/drivers/ceph.py), and it was seen on Epoxy. A second such backup of the volume fails. The delete of the
// failed one deletes the image, and then nobody can restore the first, which Cinder still shows as available. A user knows such a store by a
// backup without objects, because the other stores count at least one object.

// sharesData reports whether a failed backup of a snapshot has the data of b.
func sharesData(b volume.Snapshot) bool { return b.Alive() && b.From != "" && b.InCeph() }

// sharing returns a backup of the volume whose data another backup of a snapshot would share; the zero Snapshot if there is none.
func (s *Service) sharing(ctx context.Context, id volume.ID, except volume.SnapshotID) (volume.Snapshot, error) {
	var found volume.Snapshot
	err := paging.Walk(paging.MaxItems, func(marker string) ([]volume.Snapshot, bool, error) {
		page, err := s.cloud.Backups(ctx, volume.SnapshotPage{Volume: id, Marker: volume.SnapshotID(marker)})
		return page, true, err
	}, func(b volume.Snapshot) string { return string(b.ID) }, func(page []volume.Snapshot) bool {
		for _, b := range page {
			if b.ID != except && sharesData(b) && (found.ID == "" || b.Ready()) {
				found = b
			}
		}
		return true
	})
	return found, observe.EndlessList(err, "the backups of volume "+string(id))
}

// checkStoreTakesAnother refuses a backup that would fail and that nobody could delete without harm. A backup that Cinder is creating has no
// objects yet in any store, so it decides nothing.
func (s *Service) checkStoreTakesAnother(ctx context.Context, spec Spec) error {
	other, err := s.sharing(ctx, spec.Volume, "")
	if err != nil || !other.Ready() {
		return err
	}
	return s.refuseBackup(ctx, spec, volume.Errorf(volume.Conflict, "volume %s already has backup %s, and the backup store of this cloud (Ceph) keeps one backup of a snapshot for each volume. "+
		"Delete that backup first, or use a class with type: snapshot", spec.Volume, other.ID).Op("snapshot"))
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
		other, err := s.sharing(ctx, b.Volume, b.ID)
		switch {
		case err != nil:
			return err
		case other.Ready():
			return volume.Errorf(volume.Conflict, "backup %s failed, and its delete could destroy the data of backup %s of the same volume, as Cinder does with Ceph. "+
				"The driver leaves it in place. Delete backup %s first, if you do not need it", b.ID, other.ID, other.ID).Op("delete")
		case other.ID != "":
			return volume.Errorf(volume.Busy, "backup %s failed, and Cinder is creating backup %s of the same volume, whose data a delete could destroy; the driver retries", b.ID, other.ID).Op("delete")
		}
	}
	if err := s.cloud.DeleteBackup(ctx, b.ID); err != nil {
		return s.explainBackupRefusal(ctx, b.ID, err)
	}
	return nil
}
