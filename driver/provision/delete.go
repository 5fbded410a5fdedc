package provision

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Delete deletes a volume, never its snapshots, and returns once Cinder answers 404 for it. A volume that does not exist is a success (CSI
// specification, DeleteVolume). Conflict names what prevents the delete: servers, snapshots, or a status that only an administrator can reset.
func (s *Service) Delete(ctx context.Context, id volume.ID) error {
	if !id.Exists() {
		return nil
	}
	lock := s.locks.Work(inflight.VolumeKey(id), "delete")
	defer lock.End()
	if _, err := lock.Lock(); err != nil {
		return err
	}
	if _, available := s.recent.TakeAvailable(id); available {
		if err := s.delete(ctx, lock, id); volume.MayHaveWritten(err) || !volume.RefusedByState(err) && !volume.Is(err, volume.NotFound) {
			return err
		}
	}
	v, err := s.readDeletable(ctx, lock, id)
	if volume.Is(err, volume.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if v.Status.Meaning().Delete == volume.BeingDeleted {
		lock.Unlock()
		return s.volumes.AwaitDeleted(ctx, id)
	}
	return s.explainRefusal(ctx, id, volume.IgnoreNotFound(s.delete(ctx, lock, id)))
}

func (s *Service) delete(ctx context.Context, lock *inflight.Work, id volume.ID) error {
	if err := s.resource.PastLag(ctx, string(id), func() error { return s.cloud.DeleteVolume(ctx, id) }); err != nil {
		return err
	}
	lock.Unlock()
	return volume.AfterWrite(s.volumes.AwaitDeleted(ctx, id))
}

// readDeletable reads a volume once it can be deleted or is being deleted.
func (s *Service) readDeletable(ctx context.Context, lock *inflight.Work, id volume.ID) (volume.Volume, error) {
	read, err := s.resource.ReadForDelete(ctx, string(id))
	if err != nil {
		return volume.Volume{}, volume.WithOp(err, "delete")
	}
	var v volume.Volume
	err = s.resource.PastLag(ctx, string(id), func() (err error) {
		v, err = s.settled(ctx, lock, read, "become deletable", observe.ForDelete)
		return err
	})
	if err != nil {
		return volume.Volume{}, err
	}
	switch step := v.Status.Meaning().Delete; {
	case step == volume.BeingDeleted:
		return v, nil
	case len(v.Attachments) > 0:
		return v, stillAttached(v)
	case step == volume.Proceed:
		return v, nil
	}
	return v, s.volumes.Stuck(ctx, v, "Cinder does not delete it").Op("delete")
}

func stillAttached(v volume.Volume) error {
	return volume.Errorf(volume.Conflict, "volume %s is attached to %s; detach it first", v.ID, v.Holders()).Cause(cause.VolumeAttached).Op("delete")
}

// explainRefusal says why Cinder refused to delete a volume whose status allows it: most often the volume has snapshots. It returns other
// errors, and nil, unchanged.
func (s *Service) explainRefusal(ctx context.Context, id volume.ID, refusal error) error {
	if volume.MayHaveWritten(refusal) || !volume.Is(refusal, volume.InvalidArgument) && !volume.Is(refusal, volume.Conflict) {
		return refusal
	}
	v, err := s.resource.ReadForDelete(ctx, string(id))
	switch {
	case volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return err
	case v.Status.Meaning().Delete != volume.Proceed:
		return volume.Errorf(volume.Busy, "volume %s changed to status %s before Cinder could delete it; the driver retries: %w", id, v.Status, refusal).Op("delete")
	case len(v.Attachments) > 0:
		return stillAttached(v)
	}
	return volume.Errorf(volume.Conflict, "Cinder refuses to delete volume %s, most likely because it has snapshots or belongs to a group; delete those first: %w", id, refusal).Cause(cause.VolumeDependents).Op("delete")
}
