package attach

import (
	"context"
	"fmt"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// How long the driver waits before it reads again where no change of the volume wakes it.
const (
	novaPollInterval = 200 * time.Millisecond // Nova removes a volume from its list some 0.1 s after Cinder (2026-11, a small cloud)
	novaPollLongest  = 2 * time.Second
	recheckInterval  = 10 * time.Second // while another attach or detach seems to be in progress
)

// awaitChange waits until the volume changes, or until the next observation is due. What completes the sentence "waited for the volume to".
func (s *Service) awaitChange(ctx context.Context, seen observation, what string) (volume.Volume, error) {
	v, due := seen.volume, time.Now().Add(recheckInterval)
	if seen.nova != novaNotRead {
		what += " (" + seen.String() + ")"
	}
	exists := true
	now, err := s.volumes.Await(ctx, v.ID, what, func(now volume.Volume, ok bool) (bool, error) {
		exists = ok
		return !ok || now.Status != v.Status || now.AttachedTo(seen.server) != v.AttachedTo(seen.server) || seen.nova != novaNotRead && !time.Now().Before(due), nil
	})
	if err == nil && !exists {
		return volume.Volume{}, volume.NoVolume(v.ID)
	}
	return now, err
}

func (s *Service) readAfter(ctx context.Context, seen observation, after time.Duration) (volume.Volume, error) {
	volume.NoteState(ctx, fmt.Sprintf("volume %s: its status is %s; %s", seen.volume.ID, seen.volume.Status, seen))
	defer volume.BeginStep(ctx, "waiting until Cinder and Nova agree about volume "+string(seen.volume.ID)+" at server "+string(seen.server))()
	if err := volume.Sleep(ctx, after); err != nil {
		return volume.Volume{}, volume.Errorf(volume.KindOf(err), "volume %s is %s; %s; a retry checks again: %w", seen.volume.ID, seen.volume.Status, seen, err)
	}
	return s.cloud.Volume(ctx, seen.volume.ID)
}
