package volume

import "context"

// Delete deletes a volume and returns once Cinder answers 404 for it; one that does not exist is deleted. Snapshots are never
// taken along. Conflict names what stands in the way: servers, snapshots, a status that only an administrator can change.
func (s *Volumes) Delete(ctx context.Context, id ID) error {
	if !id.Exists() {
		return nil
	}
	unlock, err := s.locks.Take(VolumeKey(id), "delete")
	if err != nil {
		return err
	}
	defer unlock()
	if _, free := s.recent.TakeAvailable(id); free {
		if err := s.delete(ctx, id); MayHaveWritten(err) || !RefusedByState(err) {
			return err
		}
	}
	v, err := s.settled(ctx, id)
	if Is(err, NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if v.Status.Meaning().Delete == BeingDeleted {
		return s.volumes.AwaitDeleted(ctx, id)
	}
	return s.undeletable(ctx, id, s.delete(ctx, id))
}

// delete asks for the deletion and waits for its end.
func (s *Volumes) delete(ctx context.Context, id ID) error {
	if err := s.cloud.DeleteVolume(ctx, id); err != nil {
		return IgnoreNotFound(err)
	}
	return AfterWrite(s.volumes.AwaitDeleted(ctx, id))
}

// settled reads a volume once it can be deleted or is on its way out.
func (s *Volumes) settled(ctx context.Context, id ID) (Volume, error) {
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return Volume{}, err
	}
	if v.Status.Meaning().Delete == Wait {
		v, err = s.volumes.Await(ctx, id, "become deletable", func(v Volume, ok bool) (bool, error) {
			if !ok {
				return true, NoVolume(id)
			}
			return v.Status.Meaning().Delete != Wait, nil
		})
		if err != nil {
			return Volume{}, err
		}
	}
	switch step := v.Status.Meaning().Delete; {
	case step == BeingDeleted:
		return v, nil
	case len(v.Attachments) > 0:
		return v, Errorf(Conflict, "volume %s is attached to %s; detach it first", id, v.Holders()).Op("delete")
	case step == Proceed:
		return v, nil
	}
	return v, Errorf(Conflict, "volume %s is in status %s%s; Cinder does not delete it until an administrator resets that", id, v.Status, s.volumes.FailureReason(ctx, id)).Op("delete")
}

// undeletable says why Cinder refused to delete a volume that looked deletable: most often it has snapshots. Other errors, and none,
// stay as they are.
func (s *Volumes) undeletable(ctx context.Context, id ID, refusal error) error {
	if MayHaveWritten(refusal) || !Is(refusal, InvalidArgument) && !Is(refusal, Conflict) {
		return refusal
	}
	v, err := s.cloud.Volume(ctx, id)
	switch {
	case Is(err, NotFound):
		return nil
	case err != nil:
		return err
	case v.Status.Meaning().Delete != Proceed:
		return Errorf(Busy, "volume %s went to status %s while it was to be deleted: %w", id, v.Status, refusal).Op("delete")
	case len(v.Attachments) > 0:
		return Errorf(Conflict, "volume %s is attached to %s; detach it first", id, v.Holders()).Op("delete")
	}
	return Errorf(Conflict, "Cinder does not delete volume %s, most likely because it has snapshots or is in a group; delete those first: %w", id, refusal).Op("delete")
}
