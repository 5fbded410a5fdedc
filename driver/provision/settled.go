package provision

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// settled returns v once its status allows or forbids an operation. The caller holds the lock of the volume, and holds it again at the end; while
// settled waits, other calls work on the volume.
func (s *Service) settled(ctx context.Context, lock *inflight.Work, v volume.Volume, what string, operation func(volume.Meaning) volume.Step) (volume.Volume, error) {
	for operation(v.Status.Meaning()) == volume.Wait {
		lock.Unlock()
		now, err := s.volumes.AwaitSettled(ctx, v.ID, what, operation)
		if err == nil {
			now, err = s.relocked(ctx, lock, now)
		}
		if err != nil {
			return volume.Volume{}, err
		}
		v = now
	}
	return v, nil
}

// relocked locks the volume again. It returns v, or reads the volume if another call has worked on it since this one held the lock.
func (s *Service) relocked(ctx context.Context, lock *inflight.Work, v volume.Volume) (volume.Volume, error) {
	changed, err := lock.Lock()
	if err == nil && changed {
		v, err = s.cloud.Volume(ctx, v.ID)
	}
	return v, err
}
