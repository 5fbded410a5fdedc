package volume

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// shelf is where Cinder keeps one of the two things that a snapshot handle can name, and how it is asked about them there.
type shelf struct {
	noun   string
	named  func(ctx context.Context, name string) ([]Snapshot, error)
	delete func(ctx context.Context, id SnapshotID) error
	gone   func(ctx context.Context, id SnapshotID) error
	until  func(ctx context.Context, id SnapshotID, what string, done func(p Snapshot, ok bool) (bool, error)) (Snapshot, error)
}

func (s *Snapshots) snapshotShelf() shelf {
	return shelf{noun: "snapshot", named: s.cloud.SnapshotsNamed, gone: s.awaitDeleted, until: s.await, delete: s.cloud.DeleteSnapshot}
}

func (s *Snapshots) backupShelf() shelf {
	return shelf{noun: "backup", named: s.cloud.BackupsNamed, gone: s.awaitBackupDeleted, until: s.awaitBackupOrRetry, delete: func(ctx context.Context, id SnapshotID) error {
		if err := s.cloud.DeleteBackup(ctx, id); err != nil {
			return s.undeletableBackup(ctx, id, err)
		}
		return nil
	}}
}

// named reads what has that name, oldest first, once those that are on their way out are gone.
// Its errors are marked AfterWrite: an earlier call may have left something.
func (s *Snapshots) named(ctx context.Context, k shelf, name string) ([]Snapshot, error) {
	for {
		found, err := k.named(ctx, name)
		if err != nil {
			return nil, AfterWrite(err)
		}
		i := slices.IndexFunc(found, func(p Snapshot) bool { return snapshotStatuses[p.Status].create == leaving })
		if i < 0 {
			slices.SortFunc(found, func(a, b Snapshot) int {
				return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
			})
			return found, nil
		}
		if err := k.gone(ctx, found[i].ID); err != nil {
			return nil, AfterWrite(err)
		}
	}
}

// available waits until the oldest of what was found is available, removes the younger duplicates, and returns it. One that Cinder
// could not make is removed: no call has returned its ID, since it was never available. Unusable says why one cannot be the result
// even so. Made is what this call has created.
func (s *Snapshots) available(ctx context.Context, k shelf, found []Snapshot, made SnapshotID, unusable func(p Snapshot) error) (Snapshot, error) {
	for {
		p := found[0]
		err := unusable(p)
		switch {
		case err == nil && snapshotStatuses[p.Status].create == refuse:
			return Snapshot{}, s.failed(ctx, k, p) // before anything younger is removed, which a retry may return
		case err != nil || p.Ready():
			if err := s.removeYounger(ctx, k, found, made); err != nil {
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
func (s *Snapshots) namedOnceMade(ctx context.Context, k shelf, id SnapshotID, name string) ([]Snapshot, error) {
	_, err := k.until(ctx, id, "become available", func(p Snapshot, ok bool) (bool, error) {
		step := snapshotStatuses[p.Status].create
		return !ok || p.Ready() || step == refuse || step == leaving, nil
	})
	if err != nil {
		return nil, AfterWrite(err)
	}
	found, err := s.named(ctx, k, name)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(found, func(p Snapshot) bool { return p.ID == id }) {
		return nil, AfterWrite(Errorf(Busy, "%s %s was deleted by someone else while it was being created", k.noun, id).Op("snapshot"))
	}
	return found, nil
}

// failed returns why Cinder could not make p, after it has removed p where this driver created it, whichever call or replica did.
func (s *Snapshots) failed(ctx context.Context, k shelf, p Snapshot) error {
	reason := s.why(ctx, p)
	if p.Backup {
		if err := s.clearUp(ctx, p); err != nil {
			return AfterWrite(Errorf(KindOf(err), "Cinder could not make backup %s%s: %w", p.ID, reason, err))
		}
	}
	if !s.ours(p) {
		return AfterWrite(Errorf(Failed, "%s %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			k.noun, p.ID, p.Name, p.Status, reason).Op("snapshot"))
	}
	if err := s.discard(ctx, k, p, "Cinder could not make it"); err != nil {
		return AfterWrite(Errorf(KindOf(err), "Cinder could not make %s %s%s; removing it failed too: %w", k.noun, p.ID, reason, err))
	}
	return Errorf(Failed, "Cinder could not make %s %s of volume %s%s; the failed %s was removed", k.noun, p.ID, p.Volume, reason, k.noun).Op("snapshot")
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

// discard deletes something of ours and waits until it is gone.
func (s *Snapshots) discard(ctx context.Context, k shelf, p Snapshot, why string) error {
	s.log.InfoContext(ctx, "removing a "+k.noun+" of our own", k.noun, p.ID, "name", p.Name, "status", p.Status, "reason", why)
	if err := k.delete(ctx, p.ID); err != nil && !Is(err, NotFound) {
		return err
	}
	return k.gone(ctx, p.ID)
}

// removeYounger removes what several replicas created at once, all but the one that counts, by the rules of Volumes.removeYounger.
func (s *Snapshots) removeYounger(ctx context.Context, k shelf, found []Snapshot, made SnapshotID) error {
	for _, p := range found[1:] {
		reason := ""
		switch {
		case !s.ours(p):
			reason = staysForeign
		case p.ID != made && !p.creation().surelyAfter(found[0].creation()):
			reason = staysReturned
		default:
			if err := s.settle(ctx, k, p, "become removable as a duplicate"); err != nil {
				return AfterWrite(err)
			}
			if err := s.discard(ctx, k, p, k.noun+" "+string(found[0].ID)+" has the same name and is older"); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			s.duplicates.report(ctx, k.noun, string(p.ID), p.Name, string(found[0].ID), reason)
		}
	}
	return nil
}

// settle waits until Cinder takes a DELETE of p, or never will.
func (s *Snapshots) settle(ctx context.Context, k shelf, p Snapshot, what string) error {
	if snapshotStatuses[p.Status].delete != wait {
		return nil
	}
	_, err := k.until(ctx, p.ID, what, func(p Snapshot, ok bool) (bool, error) {
		return !ok || snapshotStatuses[p.Status].delete != wait, nil
	})
	return err
}
