package attach

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// request is one attach or detach of a volume that Nova carries out.
type request struct {
	verb   string // "attach" or "detach", for errors and logs
	volume volume.ID
	server volume.ServerID
	send   func(context.Context) error
}

// sendToNova sends a request when its turn in the queue of the server comes. The caller leaves with its context, but the volume stays
// locked and the queue stays occupied until Nova has answered. A new call for the volume gets Busy meanwhile, and later observes the
// outcome. The caller holds the lock of the volume.
func (s *Service) sendToNova(ctx context.Context, r request) error {
	leave, err := s.queues.enter(ctx, r.server)
	if err != nil {
		return volume.Errorf(volume.KindOf(err), "volume %s: the driver sent nothing to Nova: %w; a retry queues again", r.volume, err).Op(r.verb)
	}
	unlock := s.locks.Share(inflight.VolumeKey(r.volume), r.verb)
	_, err = inflight.Complete(ctx, s.requests, inflight.Request{
		Verb: r.verb, Object: "volume " + string(r.volume) + " at server " + string(r.server), Service: "Nova", Log: s.log,
		Release: func() { leave(); unlock() },
	}, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.send(ctx) })
	return err
}
