package provision

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Expand makes a volume at least as large as the range requires and returns it once Cinder shows the new size. A volume that is
// large enough stays as it is. A server that has the volume learns of the new size by itself, a little later.
func (s *Service) Expand(ctx context.Context, id volume.ID, r volume.Range) (volume.Volume, error) {
	size, err := r.Smallest()
	if err != nil {
		return volume.Volume{}, err
	}
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id).Op("expand")
	}
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "expand")
	if err != nil {
		return volume.Volume{}, err
	}
	defer unlock()
	v, err := s.extendable(ctx, id)
	switch {
	case err != nil:
		return volume.Volume{}, err
	case r.Limit > 0 && v.Size > r.Limit:
		return volume.Volume{}, volume.Errorf(volume.OutOfRange, "volume %s has %s already, more than the %s allowed", id, v.Size, r.Limit).Op("expand")
	case v.Size >= size:
		return v, nil
	case v.Status.Meaning().Extend != volume.Proceed:
		return volume.Volume{}, volume.Errorf(volume.Conflict, "volume %s is in status %s%s; it cannot be expanded until an administrator resets that", id, v.Status, s.volumes.FailureReason(ctx, id)).Op("expand")
	}
	if err := s.cloud.Extend(ctx, id, size, v.Status == volume.InUse); err != nil {
		return volume.Volume{}, err
	}
	if v, err = s.extended(ctx, id, size); err == nil {
		s.recent.Put(v)
	}
	return v, volume.AfterWrite(err)
}

// extendable reads a volume once its status does not change by itself.
func (s *Service) extendable(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return volume.Volume{}, err
	}
	if v.Status.Meaning().Extend == volume.Wait {
		v, err = s.volumes.Await(ctx, id, "become extendable", func(v volume.Volume, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoVolume(id)
			}
			return v.Status.Meaning().Extend != volume.Wait, nil
		})
	}
	if err == nil && v.Status.Meaning().Extend == volume.BeingDeleted {
		return volume.Volume{}, volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("expand")
	}
	return v, err
}

// extended waits until Cinder shows the new size. Cinder puts a volume into extending before it answers: one that is at rest
// and no larger has failed.
func (s *Service) extended(ctx context.Context, id volume.ID, size volume.Size) (volume.Volume, error) {
	v, err := s.volumes.Await(ctx, id, "be extended", func(v volume.Volume, ok bool) (bool, error) {
		if !ok {
			return true, volume.NoVolume(id)
		}
		return v.Status.Meaning().Extend != volume.Wait, nil
	})
	if err != nil || v.Size >= size && v.Status.Meaning().Extend == volume.Proceed {
		return v, err
	}
	return volume.Volume{}, volume.Errorf(volume.Failed, "Cinder could not extend volume %s to %s; it is in status %s and has %s%s", id, size, v.Status, v.Size, s.volumes.FailureReason(ctx, id)).Op("expand")
}
