package attach

import (
	"context"
	"errors"

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

// errOutdated says that another call has worked on the volume while a request waited for its turn. The driver has sent nothing, and holds the
// lock of the volume: it reads the volume again.
var errOutdated = errors.New("another call has worked on the volume meanwhile")

// sendToNova sends a request when its turn in the queue of the server comes. The caller holds the lock of the volume. Other calls may work on the
// volume while the request waits for its turn; then the error is errOutdated. The caller leaves with its context, but the volume stays locked
// and the queue stays occupied until Nova has answered. A new call for the volume gets Busy meanwhile, and later observes the outcome.
func (s *Service) sendToNova(ctx context.Context, lock *inflight.Work, r request) error {
	lock.Unlock()
	leave, err := s.queues.enter(ctx, r.server)
	if err != nil {
		return volume.Errorf(volume.KindOf(err), "volume %s: the driver sent nothing to Nova: %w; a retry queues again", r.volume, err).Op(r.verb)
	}
	changed, err := lock.Lock()
	if err == nil && changed {
		err = errOutdated
	}
	if err != nil {
		leave()
		return err
	}
	unlock := lock.Hand()
	_, err = inflight.Complete(ctx, s.requests, inflight.Request{
		Verb: r.verb, Object: "volume " + string(r.volume) + " at server " + string(r.server), Service: "Nova", Log: s.log,
		Release: func() { leave(); unlock() },
	}, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.send(ctx) })
	return err
}
