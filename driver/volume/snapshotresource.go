package volume

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// resource is what a snapshot ID can name, a snapshot or a backup, and how the driver waits for it.
type resource struct {
	*Resource[Snapshot]
	await func(ctx context.Context, id SnapshotID, what string, done func(p Snapshot, ok bool) (bool, error)) (Snapshot, error)
}

func (s *Snapshots) snapshotResource(o SnapshotServiceOptions) resource {
	k := s.resource("snapshot", o)
	k.List = s.cloud.SnapshotsNamed
	k.Delete = func(ctx context.Context, p Snapshot) error { return s.cloud.DeleteSnapshot(ctx, p.ID) }
	k.AwaitDeleted = func(ctx context.Context, p Snapshot) error { return s.awaitDeleted(ctx, p.ID) }
	k.AwaitDeletable = func(ctx context.Context, p Snapshot) error { return awaitDeletable(ctx, p, s.await) }
	return resource{k, s.await}
}

func (s *Snapshots) backupResource(o SnapshotServiceOptions) resource {
	k := s.resource("backup", o)
	k.List = s.cloud.BackupsNamed
	k.AwaitDeleted = func(ctx context.Context, b Snapshot) error { return s.awaitBackupDeleted(ctx, b.ID) }
	k.AwaitDeletable = func(ctx context.Context, b Snapshot) error { return awaitDeletable(ctx, b, s.awaitBackupOrRetry) }
	k.Delete = func(ctx context.Context, b Snapshot) error {
		if err := s.cloud.DeleteBackup(ctx, b.ID); err != nil {
			return s.undeletableBackup(ctx, b.ID, err)
		}
		return nil
	}
	return resource{k, s.awaitBackupOrRetry}
}

func (s *Snapshots) resource(noun string, o SnapshotServiceOptions) *Resource[Snapshot] {
	return &Resource[Snapshot]{Noun: noun, Facts: s.facts, Log: o.Log, CountDuplicate: o.CountDuplicate}
}

// facts are what the rule for creates must know about a snapshot or backup.
func (s *Snapshots) facts(p Snapshot) Facts {
	return Facts{
		ID: string(p.ID), Name: p.Name, Status: string(p.Status), CreatedAt: p.CreatedAt, SentAt: ParseSent(p.Metadata),
		CreatedForName: s.ours(p), BeingDeleted: p.Status.SnapshotMeaning().Create == BeingDeleted,
	}
}

// available waits until the oldest of what was found is available, removes the younger duplicates, and returns it. One that Cinder
// could not make is removed: no call has returned its ID, since it was never available. Unusable says why one cannot be the result
// even so. Made is what this call has created.
func (s *Snapshots) available(ctx context.Context, k resource, found []Snapshot, made SnapshotID, unusable func(p Snapshot) error) (Snapshot, error) {
	for {
		p := found[0]
		err := unusable(p)
		switch {
		case err == nil && p.Status.SnapshotMeaning().Create == Refuse:
			return Snapshot{}, s.failed(ctx, k, p) // before anything younger is removed, which a retry may return
		case err != nil || p.Ready():
			if err := k.DeleteYounger(ctx, found, string(made)); err != nil {
				return Snapshot{}, err
			}
			return p, err
		}
		if found, err = s.namedOnceMade(ctx, k, p.ID, p.Name); err != nil {
			return Snapshot{}, err
		}
	}
}

// namedOnceMade waits until Cinder has made something, or will not, and reads only then what has its name: duplicate.go tells why.
func (s *Snapshots) namedOnceMade(ctx context.Context, k resource, id SnapshotID, name string) ([]Snapshot, error) {
	_, err := k.await(ctx, id, "become available", func(p Snapshot, ok bool) (bool, error) {
		step := p.Status.SnapshotMeaning().Create
		return !ok || p.Ready() || step == Refuse || step == BeingDeleted, nil
	})
	if err != nil {
		return nil, AfterWrite(err)
	}
	found, err := k.Named(ctx, name)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(found, func(p Snapshot) bool { return p.ID == id }) {
		return nil, AfterWrite(Errorf(Busy, "%s %s was deleted by someone else while it was being created", k.Noun, id).Op("snapshot"))
	}
	return found, nil
}

// failed returns why Cinder could not make p, after it has removed p where this driver created it, whichever call or replica did.
func (s *Snapshots) failed(ctx context.Context, k resource, p Snapshot) error {
	reason := s.why(ctx, p)
	if p.Backup {
		if err := s.clearUp(ctx, p); err != nil {
			return AfterWrite(Errorf(KindOf(err), "Cinder could not make backup %s%s: %w", p.ID, reason, err))
		}
	}
	if !s.ours(p) {
		return AfterWrite(Errorf(Failed, "%s %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			k.Noun, p.ID, p.Name, p.Status, reason).Op("snapshot"))
	}
	if err := k.Discard(ctx, p, "Cinder could not make it"); err != nil {
		return AfterWrite(Errorf(KindOf(err), "Cinder could not make %s %s%s; removing it failed too: %w", k.Noun, p.ID, reason, err))
	}
	return Errorf(Failed, "Cinder could not make %s %s of volume %s%s; the failed %s was removed", k.Noun, p.ID, p.Volume, reason, k.Noun).Op("snapshot")
}

// why is what Cinder says of a failed snapshot or backup, as the end of a clause.
func (s *Snapshots) why(ctx context.Context, p Snapshot) string {
	if p.Reason != "" {
		reason, _, _ := strings.Cut(p.Reason, "\nTraceback") // a whole one, cut off after 255 characters (seen with Cinder 21)
		return ": " + strings.TrimSuffix(reason, ".")
	}
	return strings.TrimSuffix(s.failureReason(ctx, p.ID), ".")
}

// ours reports whether p was made by this driver, for this cluster, for the request it is named for.
func (s *Snapshots) ours(p Snapshot) bool {
	return p.Metadata[contract.MetadataRequest] == s.owner.Token(p.Name) && p.Metadata[contract.MetadataCluster] == s.owner.Cluster
}

// awaitDeletable waits until Cinder takes a DELETE of p, or never will.
func awaitDeletable(ctx context.Context, p Snapshot, await func(context.Context, SnapshotID, string, func(Snapshot, bool) (bool, error)) (Snapshot, error)) error {
	if p.Status.SnapshotMeaning().Delete != Wait {
		return nil
	}
	_, err := await(ctx, p.ID, "become deletable", func(p Snapshot, ok bool) (bool, error) {
		return !ok || p.Status.SnapshotMeaning().Delete != Wait, nil
	})
	return err
}
