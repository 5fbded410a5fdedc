package volume

import (
	"context"
	"log/slog"
)

// SnapshotOptions_ say who the driver is in a cloud, and what the service shares with others.
type SnapshotServiceOptions struct {
	Owner Owner
	Locks *Locks       // shared with every service for the same cloud; nil makes new ones
	Log   *slog.Logger // for what no RPC answer can say; nil discards
	// CountDuplicate counts a "snapshot" or "backup" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
}

// Snapshots creates and deletes the snapshots and backups of one cloud.
type Snapshots struct {
	cloud      Cloud
	volumes    Observer
	wait       SnapshotWaiter
	waitBackup SnapshotWaiter
	owner      Owner
	log        *slog.Logger
	locks      *Locks
	snapshots  resource
	backups    resource
}

// NewSnapshots returns the service for the snapshots and backups of cloud c. The waiters wait for changes of its volumes, snapshots and backups.
func NewSnapshots(c Cloud, v Waiter, w, b SnapshotWaiter, o SnapshotServiceOptions) *Snapshots {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Locks == nil {
		o.Locks = &Locks{}
	}
	s := &Snapshots{
		cloud: c, volumes: Observer{Cloud: c, Waiter: v, Log: o.Log}, wait: w, waitBackup: b, owner: o.Owner, log: o.Log, locks: o.Locks,
	}
	s.snapshots, s.backups = s.snapshotResource(o), s.backupResource(o)
	return s
}

// Get reads one snapshot or backup. NotFound where there is neither.
func (s *Snapshots) Get(ctx context.Context, id SnapshotID) (Snapshot, error) {
	if !id.Exists() {
		return Snapshot{}, NoSnapshot(id)
	}
	return snapshotOrBackup(ctx, s.cloud, id)
}

// List reads at most limit of the project's snapshots and then backups from p on, whoever made them, only those of one volume where
// of is set. A cloud that keeps no backups, or tells of none, has none. All else is as with Volumes.List.
func (s *Snapshots) List(ctx context.Context, of ID, p SnapshotPosition, limit int) ([]Snapshot, error) {
	if of != "" && !of.Exists() {
		return nil, nil
	}
	if !p.Backups {
		page, err := pageFrom(p.PagePosition, limit, placeOf, func(after SnapshotID, limit int) ([]Snapshot, error) {
			return s.cloud.Snapshots(ctx, SnapshotPage{Marker: after, Limit: limit, Volume: of})
		})
		if err != nil || len(page) > 0 {
			return page, err
		}
		p = SnapshotPosition{Backups: true}
	}
	page, err := pageFrom(p.PagePosition, limit, placeOf, func(after SnapshotID, limit int) ([]Snapshot, error) {
		return s.cloud.Backups(ctx, SnapshotPage{Marker: after, Limit: limit, Volume: of})
	})
	if without(err) || Is(err, NotFound) && p.After == "" {
		s.log.WarnContext(ctx, "the list has no backups: Cinder tells of none", "error", err)
		return nil, nil
	}
	return page, err
}

// without reports whether err says that a cloud has no backups for us.
func without(err error) bool { return Is(err, PermissionDenied) || Is(err, Unimplemented) }

// Delete deletes a snapshot or backup and returns once Cinder answers 404 for it; one that does not exist is deleted. Conflict says
// what stands in the way: a group, a status that only an administrator can change, volumes made from it that its backend needs it
// for, backups that rest on it.
func (s *Snapshots) Delete(ctx context.Context, id SnapshotID) error {
	if !id.Exists() {
		return nil
	}
	unlock, err := s.locks.Take("snapshot "+string(id), "delete")
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.settled(ctx, id)
	if Is(err, NotFound) {
		return s.deleteBackup(ctx, id)
	}
	if err != nil {
		return err
	}
	if p.Status.SnapshotMeaning().Delete == BeingDeleted {
		return s.awaitDeleted(ctx, id)
	}
	if err := s.cloud.DeleteSnapshot(ctx, id); Is(err, NotFound) {
		return nil
	} else if err != nil {
		return s.undeletable(ctx, id, err)
	}
	return AfterWrite(s.awaitDeleted(ctx, id))
}

// settled reads a snapshot once it can be deleted or is on its way out.
func (s *Snapshots) settled(ctx context.Context, id SnapshotID) (Snapshot, error) {
	p, err := s.cloud.Snapshot(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	if p.Status.SnapshotMeaning().Delete == Wait {
		p, err = s.await(ctx, id, "become deletable", func(p Snapshot, ok bool) (bool, error) {
			if !ok {
				return true, NoSnapshot(id)
			}
			return p.Status.SnapshotMeaning().Delete != Wait, nil
		})
	}
	if err == nil && p.Status.SnapshotMeaning().Delete == Refuse {
		err = Errorf(Conflict, "snapshot %s is in status %s%s; Cinder does not delete it until an administrator resets that", id, p.Status, s.failureReason(ctx, id)).Op("delete")
	}
	return p, err
}

// undeletable says why Cinder refused to delete a snapshot that looked deletable.
func (s *Snapshots) undeletable(ctx context.Context, id SnapshotID, refusal error) error {
	switch KindOf(refusal) {
	case InvalidArgument, Conflict:
	default:
		return refusal
	}
	p, err := s.cloud.Snapshot(ctx, id)
	switch {
	case Is(err, NotFound):
		return nil
	case err != nil:
		return err
	case p.Status.SnapshotMeaning().Delete != Proceed:
		return Errorf(Busy, "snapshot %s went to status %s while it was to be deleted: %w", id, p.Status, refusal).Op("delete")
	}
	return Errorf(Conflict, "Cinder does not delete snapshot %s, most likely because it is part of a group snapshot; delete that: %w", id, refusal).Op("delete")
}

// awaitDeleted waits until Cinder answers 404 for a snapshot that is being deleted. A backend that still needs the snapshot, for volumes
// made from it, gives it back: Conflict. Failed when the deletion ends in an error.
func (s *Snapshots) awaitDeleted(ctx context.Context, id SnapshotID) error {
	p, err := s.await(ctx, id, "go", func(p Snapshot, ok bool) (bool, error) {
		return !ok || p.Status == Available || p.Status == "error_deleting", nil
	})
	switch {
	case err != nil:
		return err
	case p.Status == Available:
		return Errorf(Conflict, "the backend did not delete snapshot %s and gave it back%s; most likely volumes that were made from it still need it",
			id, s.failureReason(ctx, id)).Op("delete")
	case p.Status == "error_deleting":
		return Errorf(Failed, "Cinder could not delete snapshot %s%s; it stays in status error_deleting until an administrator resets it",
			id, s.failureReason(ctx, id)).Op("delete")
	}
	return nil
}

// await waits for done, as Volumes.await does.
func (s *Snapshots) await(ctx context.Context, id SnapshotID, what string, done func(p Snapshot, ok bool) (bool, error)) (Snapshot, error) {
	p, err := s.wait.Await(ctx, id, done)
	if kind := KindOf(err); kind == DeadlineExceeded || kind == Canceled {
		return p, Errorf(kind, "waited for it to %s: %w", what, err)
	}
	return p, err
}

// failureReason is why the cloud gave up on a snapshot or backup, as Volumes.failureReason tells it.
func (s *Snapshots) failureReason(ctx context.Context, id SnapshotID) string {
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
