package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// deleteBackup deletes the backup of an ID that no snapshot has, by the rules of Delete. Before that it deletes the temporary snapshot that
// an interrupted call left: without the backup nobody would find it.
func (s *Service) deleteBackup(ctx context.Context, id volume.SnapshotID) error {
	b, err := s.backups.readDeletable(ctx, id, s.awaitBackup)
	switch {
	case withoutBackups(err):
		return s.deleteHiddenBackup(ctx, id, err)
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return volume.WithOp(err, "delete")
	}
	switch b.Status.SnapshotMeaning().Delete {
	case volume.BeingDeleted:
		return s.awaitBackupDeleted(ctx, id)
	case volume.Refuse:
		return backupStays(b)
	}
	if err := s.deleteTemporarySnapshots(ctx, b); err != nil {
		return volume.AfterWrite(err)
	}
	if err := s.sendDeleteBackup(ctx, b); err != nil {
		return err
	}
	return volume.AfterWrite(s.awaitBackupDeleted(ctx, id))
}

// deleteHiddenBackup deletes what may be a backup, where the cloud does not let the driver read one. If the driver can read the list, the list
// decides: a listed backup keeps the refusal. Otherwise a DELETE decides. If that is forbidden too, this driver cannot have created a backup
// here, and the ID belonged to a snapshot that is gone. A driver that protects other clusters sends no DELETE of what it cannot read.
func (s *Service) deleteHiddenBackup(ctx context.Context, id volume.SnapshotID, refusal error) error {
	listed, err := s.listsBackup(ctx, id)
	switch {
	case listed:
		return refusal
	case s.keepHidden && volume.Is(err, volume.PermissionDenied): // a missing right is no proof that the backup is gone
		return volume.Errorf(volume.NotOwned, "no snapshot has the ID %s, and the driver may not read whether a backup has; it leaves alone what it cannot read "+
			"(--protect-other-clusters). Give its credential the right to read backups: %w", id, refusal).Cause(cause.CloudRights).Op("delete")
	case withoutBackups(err) && !s.keepHidden:
		err = s.backups.PastLag(ctx, string(id), func() error { return s.cloud.DeleteBackup(ctx, id) })
		if err == nil {
			return volume.Errorf(volume.Unavailable, "Cinder is deleting backup %s, but does not let the driver see it; the driver asks again on the next retry: %w", id, refusal).Cause(cause.CloudAnswer).Op("delete").AfterWrite()
		}
	}
	if err != nil && !withoutBackups(err) && !volume.Is(err, volume.NotFound) {
		return err
	}
	s.log.WarnContext(ctx, "a snapshot counts as deleted: no snapshot has that ID, and this cloud does not let the driver read backups", "snapshot", id, "error", refusal)
	return nil
}

func (s *Service) listsBackup(ctx context.Context, id volume.SnapshotID) (bool, error) {
	listed := false
	err := paging.Walk(paging.MaxItems, func(marker string) ([]volume.Snapshot, bool, error) {
		page, more, err := s.cloud.Backups(ctx, volume.SnapshotPage{Marker: volume.SnapshotID(marker)})
		return page, more, volume.ListChanged(err, marker)
	}, func(b volume.Snapshot) string { return string(b.ID) }, func(page []volume.Snapshot) bool {
		listed = slices.ContainsFunc(page, func(b volume.Snapshot) bool { return strings.EqualFold(string(b.ID), string(id)) })
		return !listed
	})
	return listed, observe.EndlessList(err, "the project's backups")
}

// explainBackupRefusal says why Cinder refused to delete a backup whose status allows it. A 404 does not prove that the backup is gone:
// Cinder also answers 404 where it finds no running cinder-backup service.
func (s *Service) explainBackupRefusal(ctx context.Context, id volume.SnapshotID, refusal error) error {
	switch volume.KindOf(refusal) {
	case volume.InvalidArgument, volume.Conflict, volume.NotFound:
	default:
		return refusal
	}
	b, err := s.backups.ReadForDelete(ctx, string(id))
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case b.Status.SnapshotMeaning().Delete == volume.Refuse:
		return backupStays(b)
	case b.Status.SnapshotMeaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "backup %s changed to status %s before Cinder could delete it; the driver retries: %w", id, b.Status, refusal).Op("delete")
	case volume.Is(refusal, volume.NotFound):
		return volume.Errorf(volume.Unavailable, "backup %s still exists, but Cinder finds no running cinder-backup service %s to delete it; the driver retries: %w", id, inZone(b), refusal).Cause(cause.BackupService).Op("delete")
	}
	return volume.Errorf(volume.Conflict, "Cinder refuses to delete backup %s, most likely because incremental backups depend on it; delete those first: %w", id, refusal).Cause(cause.VolumeDependents).Op("delete")
}

// inZone says where Cinder looks for the cinder-backup of a backup. Releases after Zed take any zone for a new backup, and the backup keeps it.
// Nobody can delete a backup in a zone without cinder-backup (seen on Epoxy).
func inZone(b volume.Snapshot) string {
	if b.Zone == "" {
		return "in the zone of the volume"
	}
	return fmt.Sprintf("in zone %q of the backup", b.Zone)
}

// awaitBackupDeleted waits until Cinder answers 404 for a backup that is being deleted. Failed where the deletion ends otherwise.
func (s *Service) awaitBackupDeleted(ctx context.Context, id volume.SnapshotID) error {
	written, gone := volume.JustWritten(), false
	b, err := s.awaitBackup(ctx, id, "be deleted", func(b volume.Snapshot, ok bool) (bool, error) {
		gone = !ok
		step := b.Status.SnapshotMeaning().Delete
		return gone || step == volume.Refuse || step != volume.BeingDeleted && written.Shows(), nil
	})
	if err != nil || gone {
		return err
	}
	return backupStays(b)
}

func backupStays(b volume.Snapshot) error {
	reason := ""
	if b.Reason != "" {
		reason = ": " + b.Reason
	}
	return volume.Errorf(volume.Failed, "Cinder could not delete backup %s; it is in status %s%s", b.ID, b.Status, reason).Cause(cause.VolumeDeleteError).Op("delete")
}
