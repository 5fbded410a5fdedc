package snapshot

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
	"strings"
)

// deleteBackup deletes the backup of an id that is no snapshot's, by the rules of Delete, and before it the temporary snapshot that
// an abandoned call left: nobody would find that without the backup.
func (s *Service) deleteBackup(ctx context.Context, id volume.SnapshotID) error {
	b, err := s.cloud.Backup(ctx, id)
	if without(err) {
		return s.hiddenBackup(ctx, id, err)
	}
	if err == nil && b.Status.SnapshotMeaning().Delete == volume.Wait {
		b, err = s.awaitBackup(ctx, id, "become deletable", func(b volume.Snapshot, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoSnapshot(id)
			}
			return b.Status.SnapshotMeaning().Delete != volume.Wait, nil
		})
	}
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	}
	switch b.Status.SnapshotMeaning().Delete {
	case volume.BeingDeleted:
		return s.awaitBackupDeleted(ctx, id)
	case volume.Refuse:
		return backupStays(b)
	}
	if err := s.clearUp(ctx, b); err != nil {
		return volume.AfterWrite(err)
	}
	if err := s.cloud.DeleteBackup(ctx, id); err != nil {
		return s.undeletableBackup(ctx, id, err)
	}
	return volume.AfterWrite(s.awaitBackupDeleted(ctx, id))
}

// hiddenBackup deletes what may be a backup, where the cloud does not let the driver read one. Where the list can be read, it decides: one
// that is there keeps the refusal. Else a DELETE tells. Where that is forbidden too, the driver cannot have made a backup here, and the
// id was that of a snapshot which is gone.
func (s *Service) hiddenBackup(ctx context.Context, id volume.SnapshotID, refusal error) error {
	listed, err := s.listsBackup(ctx, id)
	switch {
	case listed:
		return refusal
	case without(err):
		err = s.cloud.DeleteBackup(ctx, id)
		if err == nil {
			return volume.Errorf(volume.Unavailable, "backup %s is being deleted; the cloud does not let the driver see that, so it asks again at the next retry: %w", id, refusal).Op("delete").AfterWrite()
		}
	}
	if err != nil && !without(err) && !volume.Is(err, volume.NotFound) {
		return err
	}
	s.log.WarnContext(ctx, "a snapshot counts as deleted: there is none of that id, and this cloud does not let the driver read backups", "snapshot", id, "error", refusal)
	return nil
}

// listsBackup reports whether the project's list of backups has that id.
func (s *Service) listsBackup(ctx context.Context, id volume.SnapshotID) (bool, error) {
	var page volume.SnapshotPage
	for {
		some, err := s.cloud.Backups(ctx, page)
		switch {
		case volume.Is(err, volume.NotFound) && page.Marker != "":
			return false, volume.Errorf(volume.Busy, "backup %s, where the list was read on, is gone; a retry reads it again: %w", page.Marker, err).Op("delete")
		case err != nil || len(some) == 0:
			return false, err
		case slices.ContainsFunc(some, func(b volume.Snapshot) bool { return strings.EqualFold(string(b.ID), string(id)) }):
			return true, nil
		}
		page.Marker = some[len(some)-1].ID
	}
}

// undeletableBackup says why Cinder refused to delete a backup that looked deletable. Its 404 is no proof that the backup is gone:
// Cinder says so too when it finds no cinder-backup that works.
func (s *Service) undeletableBackup(ctx context.Context, id volume.SnapshotID, refusal error) error {
	switch volume.KindOf(refusal) {
	case volume.InvalidArgument, volume.Conflict, volume.NotFound:
	default:
		return refusal
	}
	b, err := s.cloud.Backup(ctx, id)
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case b.Status.SnapshotMeaning().Delete == volume.Refuse:
		return backupStays(b)
	case b.Status.SnapshotMeaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "backup %s went to status %s while it was to be deleted: %w", id, b.Status, refusal).Op("delete")
	case volume.Is(refusal, volume.NotFound):
		return volume.Errorf(volume.Unavailable, "backup %s is there, but Cinder finds no cinder-backup that could delete it: %w", id, refusal).Op("delete")
	}
	return volume.Errorf(volume.Conflict, "Cinder does not delete backup %s, most likely because incremental backups rest on it; delete those first: %w", id, refusal).Op("delete")
}

// awaitBackupDeleted waits until Cinder answers 404 for a backup that is being deleted. Failed when the deletion ends otherwise.
func (s *Service) awaitBackupDeleted(ctx context.Context, id volume.SnapshotID) error {
	gone := false
	b, err := s.awaitBackup(ctx, id, "go", func(b volume.Snapshot, ok bool) (bool, error) {
		gone = !ok
		return gone || b.Status.SnapshotMeaning().Delete != volume.BeingDeleted, nil
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
	return volume.Errorf(volume.Failed, "Cinder could not delete backup %s; it is in status %s%s", b.ID, b.Status, reason).Op("delete")
}

// awaitBackup waits for done, as Volumes.until does.
func (s *Service) awaitBackup(ctx context.Context, id volume.SnapshotID, what string, done func(b volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error) {
	b, err := s.waitBackup.Await(ctx, id, done)
	if kind := volume.KindOf(err); kind == volume.DeadlineExceeded || kind == volume.Canceled {
		return b, volume.Errorf(kind, "waited for it to %s: %w", what, err)
	}
	return b, err
}
