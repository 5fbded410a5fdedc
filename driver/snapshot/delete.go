package snapshot

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Delete deletes a snapshot or backup and returns once Cinder answers 404 for it. One that does not exist is a success (CSI specification,
// DeleteSnapshot). Conflict names what prevents the delete: a group, or a status that only an administrator can reset. Volumes created from
// the snapshot, or incremental backups, can prevent it too.
func (s *Service) Delete(ctx context.Context, id volume.SnapshotID) error {
	if !id.Exists() {
		return nil
	}
	unlock, err := s.locks.Take("snapshot "+string(id), "delete")
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.snapshots.readDeletable(ctx, id, s.awaitSnapshot)
	switch {
	case volume.Is(err, volume.NotFound):
		return s.deleteBackup(ctx, id)
	case err != nil:
		return volume.WithOp(err, "delete")
	}
	switch p.Status.SnapshotMeaning().Delete {
	case volume.Refuse:
		return volume.Errorf(volume.Conflict, "snapshot %s is in status %s%s; Cinder does not delete it until an administrator resets the status", id, p.Status, s.message(ctx, id)).Cause(cause.VolumeDeleteError).Op("delete")
	case volume.BeingDeleted:
		return s.awaitSnapshotDeleted(ctx, id)
	}
	if err := s.snapshots.PastLag(ctx, string(id), func() error { return s.cloud.DeleteSnapshot(ctx, id) }); volume.Is(err, volume.NotFound) {
		return nil
	} else if err != nil {
		return s.explainRefusal(ctx, id, err)
	}
	return volume.AfterWrite(s.awaitSnapshotDeleted(ctx, id))
}

// explainRefusal says why Cinder refused to delete a snapshot whose status allows it.
func (s *Service) explainRefusal(ctx context.Context, id volume.SnapshotID, refusal error) error {
	if !volume.Is(refusal, volume.InvalidArgument) && !volume.Is(refusal, volume.Conflict) {
		return refusal
	}
	p, err := s.snapshots.ReadForDelete(ctx, string(id))
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case p.Status.SnapshotMeaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "snapshot %s changed to status %s before Cinder could delete it; the driver retries: %w", id, p.Status, refusal).Op("delete")
	}
	return volume.Errorf(volume.Conflict, "Cinder refuses to delete snapshot %s, most likely because it belongs to a group snapshot; delete that first: %w", id, refusal).Cause(cause.VolumeDependents).Op("delete")
}

// awaitSnapshotDeleted waits until Cinder answers 404 for a snapshot that is being deleted. A backend that still needs the snapshot, for
// volumes created from it, makes it available again: Conflict. Failed where the deletion ends in an error.
func (s *Service) awaitSnapshotDeleted(ctx context.Context, id volume.SnapshotID) error {
	written := volume.JustWritten()
	p, err := s.awaitSnapshot(ctx, id, "be deleted", func(p volume.Snapshot, ok bool) (bool, error) {
		return !ok || p.Status == volume.Available && written.Shows() || p.Status == "error_deleting", nil
	})
	switch {
	case err != nil:
		return err
	case p.Status == volume.Available:
		return volume.Errorf(volume.Conflict, "the backend kept snapshot %s%s; most likely volumes created from the snapshot still need it", id, s.awaitMessage(ctx, id)).Cause(cause.VolumeDependents).Op("delete")
	case p.Status == "error_deleting":
		return volume.Errorf(volume.Failed, "Cinder could not delete snapshot %s%s; it stays in status error_deleting until an administrator resets the status", id, s.awaitMessage(ctx, id)).Cause(cause.VolumeDeleteError).Op("delete")
	}
	return nil
}
