package provision

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Delete deletes a volume and returns once Cinder answers 404 for it; one that does not exist is deleted. Snapshots are never
// taken along. Conflict names what stands in the way: servers, snapshots, a status that only an administrator can change.
func (s *Service) Delete(ctx context.Context, id volume.ID) error {
	if !id.Exists() {
		return nil
	}
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "delete")
	if err != nil {
		return err
	}
	defer unlock()
	if _, free := s.recent.TakeAvailable(id); free {
		if err := s.delete(ctx, id); volume.MayHaveWritten(err) || !volume.RefusedByState(err) {
			return err
		}
	}
	v, err := s.settled(ctx, id)
	if volume.Is(err, volume.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if v.Status.Meaning().Delete == volume.BeingDeleted {
		return s.volumes.AwaitDeleted(ctx, id)
	}
	return s.undeletable(ctx, id, s.delete(ctx, id))
}

// delete asks for the deletion and waits for its end.
func (s *Service) delete(ctx context.Context, id volume.ID) error {
	if err := s.cloud.DeleteVolume(ctx, id); err != nil {
		return volume.IgnoreNotFound(err)
	}
	return volume.AfterWrite(s.volumes.AwaitDeleted(ctx, id))
}

// settled reads a volume once it can be deleted or is on its way out.
func (s *Service) settled(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return volume.Volume{}, err
	}
	if v.Status.Meaning().Delete == volume.Wait {
		v, err = s.volumes.Await(ctx, id, "become deletable", func(v volume.Volume, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoVolume(id)
			}
			return v.Status.Meaning().Delete != volume.Wait, nil
		})
		if err != nil {
			return volume.Volume{}, err
		}
	}
	switch step := v.Status.Meaning().Delete; {
	case step == volume.BeingDeleted:
		return v, nil
	case len(v.Attachments) > 0:
		return v, volume.Errorf(volume.Conflict, "volume %s is attached to %s; detach it first", id, v.Holders()).Op("delete")
	case step == volume.Proceed:
		return v, nil
	}
	return v, volume.Errorf(volume.Conflict, "volume %s is in status %s%s; Cinder does not delete it until an administrator resets that", id, v.Status, s.volumes.FailureReason(ctx, id)).Op("delete")
}

// undeletable says why Cinder refused to delete a volume that looked deletable: most often it has snapshots. Other errors, and none,
// stay as they are.
func (s *Service) undeletable(ctx context.Context, id volume.ID, refusal error) error {
	if volume.MayHaveWritten(refusal) || !volume.Is(refusal, volume.InvalidArgument) && !volume.Is(refusal, volume.Conflict) {
		return refusal
	}
	v, err := s.cloud.Volume(ctx, id)
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case v.Status.Meaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "volume %s went to status %s while it was to be deleted: %w", id, v.Status, refusal).Op("delete")
	case len(v.Attachments) > 0:
		return volume.Errorf(volume.Conflict, "volume %s is attached to %s; detach it first", id, v.Holders()).Op("delete")
	}
	return volume.Errorf(volume.Conflict, "Cinder does not delete volume %s, most likely because it has snapshots or is in a group; delete those first: %w", id, refusal).Op("delete")
}
