package snapshot

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// resource is what a snapshot ID can name, a snapshot or a backup, and how the driver waits for it.
type resource struct {
	*idempotent.Resource[volume.Snapshot]
	await func(ctx context.Context, id volume.SnapshotID, what string, done func(p volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error)
}

func (s *Service) snapshotResource(o Options) resource {
	k := s.resource("snapshot", o)
	k.List = s.cloud.SnapshotsNamed
	k.Delete = func(ctx context.Context, p volume.Snapshot) error { return s.cloud.DeleteSnapshot(ctx, p.ID) }
	k.AwaitDeleted = func(ctx context.Context, p volume.Snapshot) error { return s.awaitDeleted(ctx, p.ID) }
	k.AwaitDeletable = func(ctx context.Context, p volume.Snapshot) error { return awaitDeletable(ctx, p, s.await) }
	return resource{k, s.await}
}

func (s *Service) backupResource(o Options) resource {
	k := s.resource("backup", o)
	k.List = s.cloud.BackupsNamed
	k.AwaitDeleted = func(ctx context.Context, b volume.Snapshot) error { return s.awaitBackupDeleted(ctx, b.ID) }
	k.AwaitDeletable = func(ctx context.Context, b volume.Snapshot) error {
		return awaitDeletable(ctx, b, s.awaitBackupOrRetry)
	}
	k.Delete = func(ctx context.Context, b volume.Snapshot) error {
		if err := s.cloud.DeleteBackup(ctx, b.ID); err != nil {
			return s.undeletableBackup(ctx, b.ID, err)
		}
		return nil
	}
	return resource{k, s.awaitBackupOrRetry}
}

func (s *Service) resource(noun string, o Options) *idempotent.Resource[volume.Snapshot] {
	return &idempotent.Resource[volume.Snapshot]{Noun: noun, Facts: s.facts, Log: o.Log, CountDuplicate: o.CountDuplicate}
}

// facts are what the rule for creates must know about a snapshot or backup.
func (s *Service) facts(p volume.Snapshot) idempotent.Facts {
	return idempotent.Facts{
		ID: string(p.ID), Name: p.Name, Status: string(p.Status), CreatedAt: p.CreatedAt, SentAt: idempotent.ParseSent(p.Metadata),
		CreatedForName: s.ours(p), BeingDeleted: p.Status.SnapshotMeaning().Create == volume.BeingDeleted,
	}
}

// available waits until the oldest of what was found is available, removes the younger duplicates, and returns it. One that Cinder
// could not make is removed: no call has returned its ID, since it was never available. Unusable says why one cannot be the result
// even so. Made is what this call has created.
func (s *Service) available(ctx context.Context, k resource, found []volume.Snapshot, made volume.SnapshotID, unusable func(p volume.Snapshot) error) (volume.Snapshot, error) {
	for {
		p := found[0]
		err := unusable(p)
		switch {
		case err == nil && p.Status.SnapshotMeaning().Create == volume.Refuse:
			return volume.Snapshot{}, s.failed(ctx, k, p) // before anything younger is removed, which a retry may return
		case err != nil || p.Ready():
			if err := k.DeleteYounger(ctx, found, string(made)); err != nil {
				return volume.Snapshot{}, err
			}
			return p, err
		}
		if found, err = s.namedOnceMade(ctx, k, p.ID, p.Name); err != nil {
			return volume.Snapshot{}, err
		}
	}
}

// namedOnceMade waits until Cinder has made something, or will not, and reads only then what has its name: duplicate.go tells why.
func (s *Service) namedOnceMade(ctx context.Context, k resource, id volume.SnapshotID, name string) ([]volume.Snapshot, error) {
	_, err := k.await(ctx, id, "become available", func(p volume.Snapshot, ok bool) (bool, error) {
		step := p.Status.SnapshotMeaning().Create
		return !ok || p.Ready() || step == volume.Refuse || step == volume.BeingDeleted, nil
	})
	if err != nil {
		return nil, volume.AfterWrite(err)
	}
	found, err := k.Named(ctx, name)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(found, func(p volume.Snapshot) bool { return p.ID == id }) {
		return nil, volume.AfterWrite(volume.Errorf(volume.Busy, "%s %s was deleted by someone else while it was being created", k.Noun, id).Op("snapshot"))
	}
	return found, nil
}

// failed returns why Cinder could not make p, after it has removed p where this driver created it, whichever call or replica did.
func (s *Service) failed(ctx context.Context, k resource, p volume.Snapshot) error {
	reason := s.why(ctx, p)
	if p.Backup {
		if err := s.clearUp(ctx, p); err != nil {
			return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not make backup %s%s: %w", p.ID, reason, err))
		}
	}
	if !s.ours(p) {
		return volume.AfterWrite(volume.Errorf(volume.Failed, "%s %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			k.Noun, p.ID, p.Name, p.Status, reason).Op("snapshot"))
	}
	if err := k.Discard(ctx, p, "Cinder could not make it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not make %s %s%s; removing it failed too: %w", k.Noun, p.ID, reason, err))
	}
	return volume.Errorf(volume.Failed, "Cinder could not make %s %s of volume %s%s; the failed %s was removed", k.Noun, p.ID, p.Volume, reason, k.Noun).Op("snapshot")
}

// why is what Cinder says of a failed snapshot or backup, as the end of a clause.
func (s *Service) why(ctx context.Context, p volume.Snapshot) string {
	if p.Reason != "" {
		reason, _, _ := strings.Cut(p.Reason, "\nTraceback") // a whole one, cut off after 255 characters (seen with Cinder 21)
		return ": " + strings.TrimSuffix(reason, ".")
	}
	return strings.TrimSuffix(s.failureReason(ctx, p.ID), ".")
}

// ours reports whether p was made by this driver, for this cluster, for the request it is named for.
func (s *Service) ours(p volume.Snapshot) bool {
	return p.Metadata[contract.MetadataRequest] == s.owner.Token(p.Name) && p.Metadata[contract.MetadataCluster] == s.owner.Cluster
}

// awaitDeletable waits until Cinder takes a DELETE of p, or never will.
func awaitDeletable(ctx context.Context, p volume.Snapshot, await func(context.Context, volume.SnapshotID, string, func(volume.Snapshot, bool) (bool, error)) (volume.Snapshot, error)) error {
	if p.Status.SnapshotMeaning().Delete != volume.Wait {
		return nil
	}
	_, err := await(ctx, p.ID, "become deletable", func(p volume.Snapshot, ok bool) (bool, error) {
		return !ok || p.Status.SnapshotMeaning().Delete != volume.Wait, nil
	})
	return err
}
