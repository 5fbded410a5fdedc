package observe

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Requested reads a volume that a request names, for every RPC that acts on it: a delete, attach, detach, expansion, change, snapshot, or copy.
// It is the one place that asks whether the volume is the driver's to act on. PermissionDenied where it is not. NotFound where the volume does
// not exist.
func (o Volumes) Requested(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := o.Get(ctx, id)
	if err == nil {
		err = o.Allow(v)
	}
	return v, err
}

// Allow is the question of Requested for a volume that the caller has read already.
func (o Volumes) Allow(v volume.Volume) error { return o.Protection.CheckVolume(v) }
