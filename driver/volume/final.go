package volume

import "context"

// finalOrRetryable returns err unchanged where a final answer is safe: no volume has the name, and no create request for it may still
// be at work. After a final answer the sidecar forgets the claim, and nobody would ever delete such a volume. Any other err is marked
// AfterWrite, and the next retry uses what exists. Incompatible is final: a volume exists, and no retry would change it.
func (s *Volumes) finalOrRetryable(ctx context.Context, w CreateSpec, err error) error {
	if !final(err) || Is(err, Incompatible) {
		return err
	}
	if held := s.holdOffs.check(volumeNamed(w.Name)); held != nil {
		return markHeldOff(err, held)
	}
	found, unread := s.cloud.VolumesNamed(ctx, w.Name)
	switch {
	case unread != nil:
		return markUnread(err, unread)
	case len(found) > 0:
		return markExisting(err, "volume", string(found[0].ID))
	}
	return err
}

// volumeNamed is what a volume's create is called, by its lock and by its hold-off.
func volumeNamed(name string) string { return "volume " + name }

// final reports whether the sidecars would take a failure for the end of a request. After these kinds they retry, marked or not.
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

// markHeldOff marks a failure that comes while an earlier create request may still be carried out.
func markHeldOff(err, held error) error {
	return Errorf(KindOf(err), "%w; this error is not final yet: %w", err, held).AfterWrite()
}

// markUnread marks a failure after which the driver cannot tell whether something else has the name.
func markUnread(err, unread error) error {
	return Errorf(KindOf(err), "%w; the driver cannot read whether another request has created it, and retries: %w", err, unread).AfterWrite()
}

// markExisting marks a failure after which something else has the name.
func markExisting(err error, noun, id string) error {
	return Errorf(KindOf(err), "%w; %s %s has the same name, and the next retry uses it", err, noun, id).AfterWrite()
}

// finalOrRetryable is to snapshots and backups what Volumes.finalOrRetryable is to volumes.
func (s *Snapshots) finalOrRetryable(ctx context.Context, w SnapshotSpec, err error) error {
	if !final(err) || Is(err, Incompatible) {
		return err
	}
	for _, k := range s.shelves(w) {
		if held := s.holdOffs.check(k.noun + " " + w.Name); held != nil {
			return markHeldOff(err, held)
		}
		found, unread := k.named(ctx, w.Name)
		switch {
		case unread != nil:
			return markUnread(err, unread)
		case len(found) > 0:
			return markExisting(err, k.noun, string(found[0].ID))
		}
	}
	return err
}

// shelves are where something may be that was made for a wish; what can be an answer comes first.
func (s *Snapshots) shelves(w SnapshotSpec) []shelf {
	if w.Backup != nil {
		return []shelf{s.backupShelf(), s.snapshotShelf()}
	}
	return []shelf{s.snapshotShelf()}
}
