package attach

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// requestTimeout bounds a request whose caller has left. Package openstack gives the HTTP request itself two minutes and names the
// service that did not answer. Nova gives the compute host one minute.
const requestTimeout = 2*time.Minute + 30*time.Second

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
	answered := make(chan error, 1)
	s.requests.Go(func() {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if deadline, ok := ctx.Deadline(); ok {
			detached = volume.WithStartBy(detached, deadline)
		}
		err := s.sendRecovered(detached, r)
		// Leave and unlock before the answer: the next call of the same caller must find both free.
		leave()
		unlock()
		answered <- err
		if ctx.Err() != nil {
			s.log.InfoContext(ctx, "Nova answered a request whose caller had left", "operation", r.verb, "volume", r.volume, "server", r.server, "error", err)
		}
	})
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return volume.Errorf(volume.KindOf(ctx.Err()), "volume %s: outcome unknown: Nova has not answered yet for server %s; the request continues, and a retry observes its outcome: %w",
			r.volume, r.server, ctx.Err()).Op(r.verb).AfterWrite()
	}
}

// sendRecovered turns a panic into an error. The request runs in a goroutine of its own, which the recovery of the gRPC server does not
// protect.
func (s *Service) sendRecovered(ctx context.Context, r request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "a request to Nova panicked; please report this", "operation", r.verb, "volume", r.volume, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = volume.Errorf(volume.Unknown, "volume %s: the driver panicked in a request for server %s; its log has the stack, please report it", r.volume, r.server).Op(r.verb).AfterWrite()
		}
	}()
	return r.send(ctx)
}
