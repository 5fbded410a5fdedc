package provision

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Expand makes a volume at least as large as the range requires and returns it once Cinder shows the new size (CSI specification,
// ControllerExpandVolume). A volume that is large enough stays unchanged. A server that uses the volume sees the new size a little later.
func (s *Service) Expand(ctx context.Context, id volume.ID, r volume.Range) (volume.Volume, error) {
	size, err := r.Smallest()
	if err != nil {
		return volume.Volume{}, err
	}
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id).Op("expand")
	}
	lock := s.locks.Work(inflight.VolumeKey(id), "expand")
	defer lock.End()
	if _, err := lock.Lock(); err != nil {
		return volume.Volume{}, err
	}
	if v, cached := s.recent.Take(id); cached && v.Size < size && v.Status.Meaning().Extend == volume.Proceed && v.CheckRestored("expand") == nil {
		// Cinder refuses the request if the volume has changed since.
		if v, err = s.extend(ctx, lock, v, size); volume.MayHaveWritten(err) || !volume.RefusedByState(err) {
			return v, err
		}
	}
	v, err := s.readExpandable(ctx, lock, id)
	switch {
	case err != nil:
		return volume.Volume{}, err
	case r.Limit > 0 && v.Size > r.Limit:
		return volume.Volume{}, volume.Errorf(volume.OutOfRange, "volume %s already has %s, more than the limit of %s", id, v.Size, r.Limit).Op("expand")
	case v.Size >= size:
		return v, nil
	case v.Status.Meaning().Extend != volume.Proceed:
		return volume.Volume{}, s.volumes.Stuck(ctx, v, "Cinder does not expand it").Op("expand")
	}
	return s.extend(ctx, lock, v, size)
}

// extend requests the new size and waits until Cinder shows it.
func (s *Service) extend(ctx context.Context, lock *inflight.Work, v volume.Volume, size volume.Size) (volume.Volume, error) {
	if err := s.cloud.Extend(ctx, v.ID, size, v.Status == volume.InUse); err != nil {
		return volume.Volume{}, err
	}
	lock.Unlock()
	v, err := s.awaitSize(ctx, v.ID, size)
	if err == nil {
		s.recent.Put(v)
	}
	return v, volume.AfterWrite(err)
}

// readExpandable reads a volume once its status does not change by itself.
func (s *Service) readExpandable(ctx context.Context, lock *inflight.Work, id volume.ID) (volume.Volume, error) {
	v, err := s.volumes.Get(ctx, id)
	if err == nil {
		err = v.CheckRestored("expand")
	}
	if err != nil {
		return volume.Volume{}, volume.WithOp(err, "expand")
	}
	v, err = s.settled(ctx, lock, v, "become expandable", observe.ForExtend)
	if err == nil && v.Status.Meaning().Extend == volume.BeingDeleted {
		return volume.Volume{}, volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("expand")
	}
	return v, err
}

// awaitSize waits until Cinder shows the new size. Cinder sets the status extending before it answers. So a volume that has another status
// and is too small was not expanded, once reads show that.
func (s *Service) awaitSize(ctx context.Context, id volume.ID, size volume.Size) (volume.Volume, error) {
	v, err := s.volumes.AwaitEffect(ctx, id, "be expanded", observe.ForExtend, func(v volume.Volume) bool { return v.Size >= size })
	if err != nil || v.Size >= size && v.Status.Meaning().Extend == volume.Proceed {
		return v, err
	}
	return volume.Volume{}, volume.Errorf(volume.Failed, "Cinder could not expand volume %s to %s; it is in status %s and has %s%s", id, size, v.Status, v.Size, s.volumes.FailureReason(ctx, id)).Cause(cause.VolumeExpandError).Op("expand")
}
