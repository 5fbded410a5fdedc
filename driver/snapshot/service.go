// Package snapshot creates and deletes snapshots and backups: a CSI snapshot ID names either.
//
// A create finds the object by name or creates it, and returns once it is available. It keeps nothing in memory.
package snapshot

import (
	"context"
	"log/slog"

	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// SnapshotOptions_ say who the driver is in a cloud, and what the service shares with others.
type Options struct {
	Owner idempotent.Owner
	Locks *inflight.Locks // shared with every service for the same cloud; nil makes new ones
	Log   *slog.Logger    // for what no RPC answer can say; nil discards
	// CountDuplicate counts a "snapshot" or "backup" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
}

// Snapshots creates and deletes the snapshots and backups of one cloud.
type Service struct {
	cloud      volume.Cloud
	volumes    observe.Volumes
	wait       volume.SnapshotWaiter
	waitBackup volume.SnapshotWaiter
	owner      idempotent.Owner
	log        *slog.Logger
	locks      *inflight.Locks
	snapshots  resource
	backups    resource
}

// NewSnapshots returns the service for the snapshots and backups of cloud c. The waiters wait for changes of its volumes, snapshots and backups.
func New(c volume.Cloud, v volume.Waiter, w, b volume.SnapshotWaiter, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Locks == nil {
		o.Locks = &inflight.Locks{}
	}
	s := &Service{
		cloud: c, volumes: observe.Volumes{Cloud: c, Waiter: v, Log: o.Log}, wait: w, waitBackup: b, owner: o.Owner, log: o.Log, locks: o.Locks,
	}
	s.snapshots, s.backups = s.snapshotResource(o), s.backupResource(o)
	return s
}

// Get reads one snapshot or backup. NotFound where there is neither.
func (s *Service) Get(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	if !id.Exists() {
		return volume.Snapshot{}, volume.NoSnapshot(id)
	}
	return observe.SnapshotOrBackup(ctx, s.cloud, id)
}

// List reads at most limit of the project's snapshots and then backups from p on, whoever made them, only those of one volume where
// of is set. A cloud that keeps no backups, or tells of none, has none. All else is as with Volumes.List.
func (s *Service) List(ctx context.Context, of volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error) {
	if of != "" && !of.Exists() {
		return nil, nil
	}
	if !p.Backups {
		page, err := observe.PageFrom(p.PagePosition, limit, volume.SnapshotPagePosition, func(after volume.SnapshotID, limit int) ([]volume.Snapshot, error) {
			return s.cloud.Snapshots(ctx, volume.SnapshotPage{Marker: after, Limit: limit, Volume: of})
		})
		if err != nil || len(page) > 0 {
			return page, err
		}
		p = volume.SnapshotPosition{Backups: true}
	}
	page, err := observe.PageFrom(p.PagePosition, limit, volume.SnapshotPagePosition, func(after volume.SnapshotID, limit int) ([]volume.Snapshot, error) {
		return s.cloud.Backups(ctx, volume.SnapshotPage{Marker: after, Limit: limit, Volume: of})
	})
	if without(err) || volume.Is(err, volume.NotFound) && p.After == "" {
		s.log.WarnContext(ctx, "the list has no backups: Cinder tells of none", "error", err)
		return nil, nil
	}
	return page, err
}

// without reports whether err says that a cloud has no backups for us.
func without(err error) bool {
	return volume.Is(err, volume.PermissionDenied) || volume.Is(err, volume.Unimplemented)
}

// Delete deletes a snapshot or backup and returns once Cinder answers 404 for it; one that does not exist is deleted. Conflict says
// what stands in the way: a group, a status that only an administrator can change, volumes made from it that its backend needs it
// for, backups that rest on it.
func (s *Service) Delete(ctx context.Context, id volume.SnapshotID) error {
	if !id.Exists() {
		return nil
	}
	unlock, err := s.locks.Take("snapshot "+string(id), "delete")
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.settled(ctx, id)
	if volume.Is(err, volume.NotFound) {
		return s.deleteBackup(ctx, id)
	}
	if err != nil {
		return err
	}
	if p.Status.SnapshotMeaning().Delete == volume.BeingDeleted {
		return s.awaitDeleted(ctx, id)
	}
	if err := s.cloud.DeleteSnapshot(ctx, id); volume.Is(err, volume.NotFound) {
		return nil
	} else if err != nil {
		return s.undeletable(ctx, id, err)
	}
	return volume.AfterWrite(s.awaitDeleted(ctx, id))
}

// settled reads a snapshot once it can be deleted or is on its way out.
func (s *Service) settled(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	p, err := s.cloud.Snapshot(ctx, id)
	if err != nil {
		return volume.Snapshot{}, err
	}
	if p.Status.SnapshotMeaning().Delete == volume.Wait {
		p, err = s.await(ctx, id, "become deletable", func(p volume.Snapshot, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoSnapshot(id)
			}
			return p.Status.SnapshotMeaning().Delete != volume.Wait, nil
		})
	}
	if err == nil && p.Status.SnapshotMeaning().Delete == volume.Refuse {
		err = volume.Errorf(volume.Conflict, "snapshot %s is in status %s%s; Cinder does not delete it until an administrator resets that", id, p.Status, s.failureReason(ctx, id)).Op("delete")
	}
	return p, err
}

// undeletable says why Cinder refused to delete a snapshot that looked deletable.
func (s *Service) undeletable(ctx context.Context, id volume.SnapshotID, refusal error) error {
	switch volume.KindOf(refusal) {
	case volume.InvalidArgument, volume.Conflict:
	default:
		return refusal
	}
	p, err := s.cloud.Snapshot(ctx, id)
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case p.Status.SnapshotMeaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "snapshot %s went to status %s while it was to be deleted: %w", id, p.Status, refusal).Op("delete")
	}
	return volume.Errorf(volume.Conflict, "Cinder does not delete snapshot %s, most likely because it is part of a group snapshot; delete that: %w", id, refusal).Op("delete")
}

// awaitDeleted waits until Cinder answers 404 for a snapshot that is being deleted. A backend that still needs the snapshot, for volumes
// made from it, gives it back: Conflict. Failed when the deletion ends in an error.
func (s *Service) awaitDeleted(ctx context.Context, id volume.SnapshotID) error {
	p, err := s.await(ctx, id, "go", func(p volume.Snapshot, ok bool) (bool, error) {
		return !ok || p.Status == volume.Available || p.Status == "error_deleting", nil
	})
	switch {
	case err != nil:
		return err
	case p.Status == volume.Available:
		return volume.Errorf(volume.Conflict, "the backend did not delete snapshot %s and gave it back%s; most likely volumes that were made from it still need it",
			id, s.failureReason(ctx, id)).Op("delete")
	case p.Status == "error_deleting":
		return volume.Errorf(volume.Failed, "Cinder could not delete snapshot %s%s; it stays in status error_deleting until an administrator resets it",
			id, s.failureReason(ctx, id)).Op("delete")
	}
	return nil
}

// await waits for done, as Volumes.await does.
func (s *Service) await(ctx context.Context, id volume.SnapshotID, what string, done func(p volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error) {
	p, err := s.wait.Await(ctx, id, done)
	if kind := volume.KindOf(err); kind == volume.DeadlineExceeded || kind == volume.Canceled {
		return p, volume.Errorf(kind, "waited for it to %s: %w", what, err)
	}
	return p, err
}

// failureReason is why the cloud gave up on a snapshot or backup, as Volumes.failureReason tells it.
func (s *Service) failureReason(ctx context.Context, id volume.SnapshotID) string {
	reason, err := s.cloud.SnapshotFailure(ctx, id)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read Cinder's messages about a snapshot", "snapshot", id, "error", err)
		return ""
	}
	if reason == "" {
		return ""
	}
	return ": " + reason
}
