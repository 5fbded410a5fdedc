package volume

import (
	"cmp"
	"context"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// SnapshotWish is what a new snapshot shall be.
type SnapshotWish struct {
	// Name is the request's identity: two wishes of one name are the same snapshot.
	Name   string
	Volume ID
	// Force allows a snapshot of a volume in use on clouds that want to be told so: those without Cinder's 3.66.
	Force bool
	// Metadata is added to what every snapshot of the driver carries.
	Metadata map[string]string
}

// Create makes the snapshot of a wish, or finds it where an earlier call made it. It returns once Cinder has accepted it, whether
// or not it is ready: the same call tells later.
//
// As with Volumes.Create the outcome does not rest on memory. A snapshot that Cinder could not make is removed before the failure
// is told, so that a retry begins anew. Errors are marked AfterWrite wherever a snapshot may exist.
func (s *Snapshots) Create(ctx context.Context, w SnapshotWish) (Snapshot, error) {
	if w.Name == "" {
		return Snapshot{}, Errorf(InvalidArgument, "a snapshot needs a name").Op("snapshot")
	}
	unlock, err := s.volumes.locks.take("snapshot "+w.Name, "create")
	if err != nil {
		return Snapshot{}, AfterWrite(err)
	}
	defer unlock()
	found, err := s.named(ctx, w.Name)
	if err != nil {
		return Snapshot{}, err
	}
	var made SnapshotID
	if len(found) == 0 {
		if made, found, err = s.order(ctx, w); err != nil {
			return Snapshot{}, err
		}
	}
	if err := s.removeYounger(ctx, found, made); err != nil {
		return Snapshot{}, err
	}
	switch p := found[0]; {
	case p.Volume != w.Volume:
		return Snapshot{}, Errorf(Incompatible, "snapshot %s is named %s already and is of volume %s, not of %s", p.ID, w.Name, p.Volume, w.Volume).Op("snapshot")
	case snapshotStatuses[p.Status].create == refuse:
		return Snapshot{}, s.failed(ctx, p)
	default:
		return p, nil
	}
}

// named reads the snapshots of that name, oldest first, once those that are on their way out are gone. Its errors are marked
// AfterWrite: an earlier call may have left a snapshot.
func (s *Snapshots) named(ctx context.Context, name string) ([]Snapshot, error) {
	for {
		found, err := s.cloud.SnapshotsNamed(ctx, name)
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
		if err := s.gone(ctx, found[i].ID); err != nil {
			return nil, AfterWrite(err)
		}
	}
}

// order asks Cinder for the snapshot and reads again who has the name, since another replica may have asked too.
func (s *Snapshots) order(ctx context.Context, w SnapshotWish) (SnapshotID, []Snapshot, error) {
	v, err := s.snapshotable(ctx, w.Volume)
	if err != nil {
		return "", nil, err
	}
	p, err := s.ask(ctx, w, v)
	if err != nil && refused(err) {
		return "", nil, err
	}
	if err != nil {
		return "", nil, AfterWrite(err)
	}
	found, err := s.named(ctx, w.Name)
	if err != nil {
		return "", nil, err
	}
	if !slices.ContainsFunc(found, func(f Snapshot) bool { return f.ID == p.ID }) {
		return "", nil, AfterWrite(Errorf(Busy, "snapshot %s was deleted by someone else while it was being created", p.ID).Op("snapshot"))
	}
	return p.ID, found, nil
}

// ask asks for a snapshot, of a volume in use in the way that this cloud knows.
func (s *Snapshots) ask(ctx context.Context, w SnapshotWish, v Volume) (Snapshot, error) {
	o := SnapshotOptions{
		Name: w.Name, Volume: w.Volume, Description: contract.Description, Metadata: s.volumes.metadata(w.Name, w.Metadata), InUse: v.Status == InUse,
	}
	p, err := s.cloud.CreateSnapshot(ctx, o)
	if !o.InUse || !Is(err, Unimplemented) || MayHaveWritten(err) {
		return p, err
	}
	if !w.Force {
		return Snapshot{}, Errorf(Conflict, "volume %s is attached to %s, and this cloud's Cinder makes a snapshot of it only if the VolumeSnapshotClass has %s: \"true\"",
			v.ID, servers(v), contract.ParameterForce).Op("snapshot")
	}
	o.InUse, o.Force = false, true
	return s.cloud.CreateSnapshot(ctx, o)
}

// snapshotable reads a volume once Cinder may be asked for a snapshot of it.
func (s *Snapshots) snapshotable(ctx context.Context, id ID) (Volume, error) {
	v, err := s.volumes.Get(ctx, id)
	if err != nil {
		return Volume{}, err
	}
	if statuses[v.Status].extend == wait {
		v, err = s.volumes.until(ctx, id, "become ready for a snapshot", func(v Volume, ok bool) (bool, error) {
			if !ok {
				return true, notFound(id)
			}
			return statuses[v.Status].extend != wait, nil
		})
		if err != nil {
			return Volume{}, err
		}
	}
	switch statuses[v.Status].extend {
	case proceed:
		return v, nil
	case leaving:
		return v, Errorf(NotFound, "volume %s is being deleted", id).Op("snapshot")
	}
	return v, Errorf(Conflict, "volume %s is in status %s%s; Cinder makes no snapshot of it until an administrator resets that", id, v.Status, s.volumes.reason(ctx, id)).Op("snapshot")
}

// failed tells why Cinder could not make p, and removes it where it is ours.
func (s *Snapshots) failed(ctx context.Context, p Snapshot) error {
	reason := s.reason(ctx, p.ID)
	if !s.ours(p) {
		return AfterWrite(Errorf(Failed, "snapshot %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			p.ID, p.Name, p.Status, reason).Op("snapshot"))
	}
	if err := s.discard(ctx, p, "Cinder could not make it"); err != nil {
		return AfterWrite(Errorf(KindOf(err), "Cinder could not make snapshot %s%s; removing it failed too: %w", p.ID, reason, err))
	}
	return Errorf(Failed, "Cinder could not make snapshot %s of volume %s%s; the failed snapshot was removed", p.ID, p.Volume, reason).Op("snapshot")
}

// ours reports whether p was made by this driver, for this cluster, for the request it is named for.
func (s *Snapshots) ours(p Snapshot) bool {
	return p.Metadata[contract.MetadataRequest] == s.volumes.token(p.Name) && p.Metadata[contract.MetadataCluster] == s.volumes.o.Cluster
}

// discard deletes a snapshot of ours and waits until it is gone.
func (s *Snapshots) discard(ctx context.Context, p Snapshot, why string) error {
	s.volumes.o.Log.InfoContext(ctx, "removing a snapshot of our own", "snapshot", p.ID, "name", p.Name, "status", p.Status, "reason", why)
	if err := s.cloud.DeleteSnapshot(ctx, p.ID); err != nil && !Is(err, NotFound) {
		return err
	}
	return s.gone(ctx, p.ID)
}

// removeYounger removes the snapshots that two replicas made at once, all but the one that counts, by the rules of
// Volumes.removeYounger.
func (s *Snapshots) removeYounger(ctx context.Context, found []Snapshot, made SnapshotID) error {
	for _, p := range found[1:] {
		if !s.ours(p) || !p.CreatedAt.After(found[0].CreatedAt) && p.ID != made {
			continue
		}
		if snapshotStatuses[p.Status].delete == wait {
			_, err := s.until(ctx, p.ID, "become removable as a duplicate", func(p Snapshot, ok bool) (bool, error) {
				return !ok || snapshotStatuses[p.Status].delete != wait, nil
			})
			if err != nil {
				return AfterWrite(err)
			}
		}
		if err := s.discard(ctx, p, "snapshot "+string(found[0].ID)+" has the same name and is older"); err != nil {
			s.volumes.o.Log.WarnContext(ctx, "a duplicate snapshot stays", "snapshot", p.ID, "name", p.Name, "error", err)
		}
	}
	return nil
}
