package volume

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// conclude lets a failure be the last word only where nothing has the wished name, and nothing will have: another replica's volume, or
// that of an order whose answer was lost, would be nobody's once the sidecar has forgotten the claim. Any other is marked, and the
// next try finds what there is. Incompatible tells of what has the name: no retry would change that.
func (s *Volumes) conclude(ctx context.Context, w Wish, err error) error {
	if !final(err) {
		return err
	}
	if s.orders.pending(w.Name) {
		return markOutstanding(err)
	}
	if Is(err, Incompatible) {
		return err
	}
	found, unread := s.cloud.VolumesNamed(ctx, w.Name)
	switch {
	case unread != nil:
		return markUnread(err, unread)
	case len(found) > 0:
		return markSurvivor(err, "volume", string(found[0].ID))
	}
	return err
}

// final reports whether a failure would be the sidecars' last word. After these kinds they ask again, marked or not.
func final(err error) bool {
	if err == nil || MayHaveWritten(err) {
		return false
	}
	switch KindOf(err) {
	case Busy, Unavailable, DeadlineExceeded, Canceled:
		return false
	}
	return true
}

// markOutstanding marks a failure that comes while an earlier request may still be carried out.
func markOutstanding(err error) error {
	return Errorf(KindOf(err), "%w; an earlier request for it was not answered and may still be carried out, so that this is not the last word for up to %s", err, orderLives).AfterWrite()
}

// markUnread marks a failure after which nobody could tell whether something else has the name.
func markUnread(err, unread error) error {
	return Errorf(KindOf(err), "%w; whether another request for it made one cannot be read: %v", err, unread).AfterWrite()
}

// markSurvivor marks a failure after which something else has the name.
func markSurvivor(err error, noun, id string) error {
	return Errorf(KindOf(err), "%w; %s %s, of another request for the same, is what the next try goes on with", err, noun, id).AfterWrite()
}

// unheard reports whether v came of an order of this process whose answer was lost.
func (s *Volumes) unheard(v Volume) bool {
	return s.orders.unheard(v.Name, v.Metadata[contract.MetadataAttempt])
}

// watchForLate removes what comes of lost orders after their request was answered with something else: nobody asks for that name again.
func (s *Volumes) watchForLate(name string, answer ID) {
	if s.orders.watch(name) {
		time.AfterFunc(orderLives, func() { s.removeLate(name, answer) })
	}
}

// removeLate leaves alone what counts before the answer: another replica that was asked for the name would have answered with that.
func (s *Volumes) removeLate(name string, answer ID) {
	ctx, cancel := context.WithTimeout(context.Background(), orderLives)
	defer cancel()
	unlock, err := s.locks.take("volume "+name, "remove what came late")
	if err != nil {
		return // whoever asks for the name removes duplicates too
	}
	defer unlock()
	found, err := s.named(ctx, name)
	if err != nil {
		s.o.Log.WarnContext(ctx, "cannot read whether a request that was not answered came to a volume", "name", name, "error", err)
		return
	}
	counts := slices.IndexFunc(found, func(v Volume) bool { return v.ID == answer })
	for i, v := range found {
		if i < counts || !s.ours(v) || !s.unheard(v) {
			continue
		}
		if err = s.removable(ctx, v); err == nil {
			err = s.discard(ctx, v, "it came late of a request that was not answered, and another was answered with")
		}
		if err != nil {
			s.o.Log.WarnContext(ctx, "a duplicate volume stays", "volume", v.ID, "name", name, "error", err)
		}
	}
}

// conclude is to snapshots and backups what Volumes.conclude is to volumes; err may tell of p. What was answered with is known to its
// VolumeSnapshot: that it failed is the last word, and only after one can the VolumeSnapshot be deleted.
func (s *Snapshots) conclude(ctx context.Context, w SnapshotWish, p Snapshot, err error) error {
	if !final(err) || answered(p) {
		return err
	}
	if !Is(err, Incompatible) {
		for _, k := range s.shelves(w) {
			found, unread := k.named(ctx, w.Name)
			switch {
			case unread != nil:
				return markUnread(err, unread)
			case len(found) > 0:
				return markSurvivor(err, k.noun, string(found[0].ID))
			}
		}
	}
	if s.orders.pending(w.Name) {
		return markOutstanding(err)
	}
	return err
}

// shelves are where something may be that was made for a wish; what can be an answer comes first.
func (s *Snapshots) shelves(w SnapshotWish) []shelf {
	if w.Backup != nil {
		return []shelf{s.backupShelf(), s.snapshotShelf()}
	}
	return []shelf{s.snapshotShelf()}
}

// heard notes that somebody may be told of p from now on, or that it is gone.
func (s *Snapshots) heard(p Snapshot) { s.orders.heard(p.Name, p.Metadata[contract.MetadataAttempt]) }

// unheard is as Volumes.unheard.
func (s *Snapshots) unheard(p Snapshot) bool {
	return s.orders.unheard(p.Name, p.Metadata[contract.MetadataAttempt])
}

// watchForLate removes what comes of lost orders after their request had its last answer, as Volumes.watchForLate does.
func (s *Snapshots) watchForLate(w SnapshotWish, answer SnapshotID) {
	if s.orders.watch(w.Name) {
		time.AfterFunc(orderLives, func() { s.removeLate(w, answer) })
	}
}

// removeLate is as Volumes.removeLate.
func (s *Snapshots) removeLate(w SnapshotWish, answer SnapshotID) {
	ctx, cancel := context.WithTimeout(context.Background(), orderLives)
	defer cancel()
	unlock, err := s.volumes.locks.take("snapshot "+w.Name, "remove what came late")
	if err != nil {
		return // whoever asks for the name removes duplicates too
	}
	defer unlock()
	for _, k := range s.shelves(w) {
		found, err := s.named(ctx, k, w.Name)
		if err != nil {
			s.volumes.o.Log.WarnContext(ctx, "cannot read whether a request that was not answered came to a "+k.noun, "name", w.Name, "error", err)
			return
		}
		counts := slices.IndexFunc(found, func(p Snapshot) bool { return p.ID == answer })
		for i, p := range found {
			if i < counts || !s.ours(p) || !s.unheard(p) || answered(p) {
				continue
			}
			if err = s.settle(ctx, k, p, "become removable as a duplicate"); err == nil {
				err = s.discard(ctx, k, p, "it came late of a request that was not answered, and another was answered with")
			}
			if err != nil {
				s.volumes.o.Log.WarnContext(ctx, "a duplicate "+k.noun+" stays", k.noun, p.ID, "name", p.Name, "error", err)
			}
		}
	}
}
