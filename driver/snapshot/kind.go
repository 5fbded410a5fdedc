package snapshot

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// kind is one of the two kinds of objects that a snapshot ID can name: snapshots or backups.
type kind struct {
	*idempotent.Resource[volume.Snapshot]
	await await
}

func (s *Service) newSnapshots(o Options) kind {
	r := s.newResource("snapshot", o)
	r.List = s.cloud.SnapshotsNamed
	r.Read = func(ctx context.Context, id string) (volume.Snapshot, error) {
		return s.cloud.Snapshot(ctx, volume.SnapshotID(id))
	}
	r.Delete = func(ctx context.Context, p volume.Snapshot) error { return s.cloud.DeleteSnapshot(ctx, p.ID) }
	r.AwaitDeleted = func(ctx context.Context, p volume.Snapshot) error { return s.awaitSnapshotDeleted(ctx, p.ID) }
	return newKind(r, s.awaitSnapshot)
}

func (s *Service) newBackups(o Options) kind {
	r := s.newResource("backup", o)
	r.List = s.cloud.BackupsNamed
	r.Read = func(ctx context.Context, id string) (volume.Snapshot, error) {
		return s.cloud.Backup(ctx, volume.SnapshotID(id))
	}
	r.Delete = s.sendDeleteBackup
	r.AwaitDeleted = func(ctx context.Context, b volume.Snapshot) error { return s.awaitBackupDeleted(ctx, b.ID) }
	return newKind(r, s.awaitBackup.bounded)
}

func newKind(r *idempotent.Resource[volume.Snapshot], wait await) kind {
	r.AwaitDeletable = func(ctx context.Context, p volume.Snapshot) error {
		_, err := wait.deletable(ctx, p)
		return volume.IgnoreNotFound(err)
	}
	return kind{r, wait}
}

func (s *Service) newResource(noun string, o Options) *idempotent.Resource[volume.Snapshot] {
	return &idempotent.Resource[volume.Snapshot]{Noun: noun, Candidate: s.candidate, Requests: o.Requests, Log: o.Log, CountDuplicate: o.CountDuplicate}
}

// candidate is what package idempotent must know about a snapshot or backup.
func (s *Service) candidate(p volume.Snapshot) idempotent.Candidate {
	return idempotent.Candidate{
		ID: string(p.ID), Name: p.Name, Status: string(p.Status), CreatedAt: p.CreatedAt, SentAt: idempotent.ParseSent(p.Metadata),
		CreatedForName: s.createdForName(p), BeingDeleted: p.Status.SnapshotMeaning().Create == volume.BeingDeleted,
	}
}

// createdForName reports whether this driver created p, for this cluster and for the request of that name.
func (s *Service) createdForName(p volume.Snapshot) bool { return s.owner.Marked(p.Name, p.Metadata) }

// findOrCreate returns the objects of that name, the oldest first. Where there is none, it calls create, and created is the ID of the new one.
func (k kind) findOrCreate(ctx context.Context, name string, create func() (volume.SnapshotID, error)) (found []volume.Snapshot, created volume.SnapshotID, err error) {
	found, err = k.FindBeforeCreate(ctx, name)
	if err != nil || len(found) > 0 {
		return found, "", err
	}
	if created, err = create(); err != nil {
		return nil, "", err
	}
	found, err = k.awaitCreated(ctx, created, name)
	return found, created, err
}

// awaitCreated waits until Cinder has created an object, or could not. NamedWith finds out whether one that no read shows is gone. Only then it reads the objects of that name, since another replica
// may have created one too (idempotent/duplicate.go).
func (k kind) awaitCreated(ctx context.Context, id volume.SnapshotID, name string) ([]volume.Snapshot, error) {
	_, err := k.await(ctx, id, "become available", func(p volume.Snapshot, ok bool) (bool, error) {
		step := p.Status.SnapshotMeaning().Create
		return !ok || p.Ready() || step == volume.Refuse || step == volume.BeingDeleted, nil
	})
	if err != nil {
		return nil, volume.AfterWrite(err)
	}
	found, err := k.NamedWith(ctx, name, string(id))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(found, func(p volume.Snapshot) bool { return p.ID == id }) {
		return nil, volume.AfterWrite(volume.Errorf(volume.Busy, "somebody deleted %s %s while Cinder created it; a retry creates it again", k.Noun, id).Op("snapshot"))
	}
	return found, nil
}

// useOldest waits until the oldest of the objects found by name is available, deletes younger duplicates, and returns the oldest. Check
// returns why an object cannot be the result. Created is the ID of the object that this call created, if it created one. useOldest deletes
// an object that Cinder could not create: it was never available, so no call has returned its ID.
func (s *Service) useOldest(ctx context.Context, k kind, found []volume.Snapshot, created volume.SnapshotID, check func(p volume.Snapshot) error) (volume.Snapshot, error) {
	for {
		p := found[0]
		err := check(p)
		switch {
		case err == nil && p.Status.SnapshotMeaning().Create == volume.Refuse:
			return volume.Snapshot{}, s.deleteFailed(ctx, k, p) // younger ones stay: a retry may return one
		case err != nil || p.Ready():
			if err := k.DeleteYounger(ctx, found, string(created)); err != nil {
				return volume.Snapshot{}, err
			}
			return p, err
		}
		if found, err = k.awaitCreated(ctx, p.ID, p.Name); err != nil {
			return volume.Snapshot{}, err
		}
	}
}

// deleteFailed returns why Cinder could not create p, after it has deleted p where this driver created it, in any call or replica.
func (s *Service) deleteFailed(ctx context.Context, k kind, p volume.Snapshot) error {
	reason := s.failureReason(ctx, p)
	if p.Backup {
		if err := s.deleteTemporarySnapshots(ctx, p); err != nil {
			return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not create backup %s%s: %w", p.ID, reason, err))
		}
	}
	if !s.createdForName(p) {
		return volume.AfterWrite(volume.Errorf(volume.Failed, "%s %s already has the name %s and is in status %s%s; the driver did not create it for this request. Delete it by hand",
			k.Noun, p.ID, p.Name, p.Status, reason).Cause(cause.CreateLeftover).Op("snapshot"))
	}
	if err := k.Discard(ctx, p, "Cinder could not create it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not create %s %s%s; the driver could not delete it either, and a retry tries again: %w", k.Noun, p.ID, reason, err))
	}
	return volume.Errorf(volume.Failed, "Cinder could not create %s %s of volume %s%s; the driver deleted it", k.Noun, p.ID, p.Volume, reason).Cause(cause.SnapshotError).Op("snapshot")
}

// failureReason is what Cinder reports about a failed snapshot or backup, as the end of a clause.
func (s *Service) failureReason(ctx context.Context, p volume.Snapshot) string {
	if p.Reason != "" {
		reason, _, _ := strings.Cut(p.Reason, " Traceback (") // Cinder 21 adds one after a line end, cut off after 255 characters
		return ": " + strings.TrimSuffix(reason, ".")
	}
	return strings.TrimSuffix(s.awaitMessage(ctx, p.ID), ".")
}

// awaitMessage is message for a snapshot that has just failed.
func (s *Service) awaitMessage(ctx context.Context, id volume.SnapshotID) string {
	text, _ := observe.AwaitReason(ctx, func() (string, error) { return s.message(ctx, id), nil })
	return text
}

// message is what Cinder reports about a failed snapshot, as the end of a clause. It is empty where the driver can read no message.
func (s *Service) message(ctx context.Context, id volume.SnapshotID) string {
	text, err := s.cloud.SnapshotFailure(ctx, id)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read the messages of Cinder about a snapshot", "snapshot", id, "error", err)
		return ""
	}
	if text == "" {
		return ""
	}
	return ": " + text
}
