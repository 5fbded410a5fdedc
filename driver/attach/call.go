package attach

import (
	"context"
	"fmt"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"runtime/debug"
	"time"
)

const (
	// longestCall bounds a request that outlives its caller, with whatever it takes to send it. Package openstack gives the request itself
	// two minutes, and says what it was that did not answer; Nova gives the server's host one minute.
	longestCall = 2*time.Minute + 30*time.Second
	// shortestCall is what must be left of the caller's deadline. Nova answers an attach after 0.9 s (Nova 26 with fifty volumes,
	// 2026-11): what begins with less is most likely abandoned, and keeps the volume locked for a caller who may not come back.
	shortestCall = time.Second
)

// askNova sends a request about a volume and a server once it is the caller's turn there. The caller leaves with its context; the volume,
// which it has locked, stays so, and its turn does not end, until Nova has answered: who comes for the volume meanwhile is told to come
// again, and then sees what has become of it.
func (s *Service) askNova(ctx context.Context, verb string, id volume.ID, server volume.ServerID, send func(context.Context) error) error {
	leave, err := s.queues.enter(ctx, server)
	if err != nil {
		return err
	}
	deadline, bounded := ctx.Deadline()
	if err := ctx.Err(); err != nil { // a turn that is free at once is given to whoever asks
		leave()
		return volume.Errorf(volume.KindOf(err), "volume %s: nothing was sent to server %s: %w", id, server, err).Op(verb)
	}
	if bounded && time.Until(deadline) < shortestCall {
		leave()
		return volume.Errorf(volume.DeadlineExceeded, "volume %s: its turn at server %s came too late for Nova to answer; nothing was sent, and a retry queues again", id, server).Op(verb)
	}
	unlock := s.locks.Share(inflight.VolumeKey(id), verb)
	answered := make(chan error, 1)
	s.calls.Go(func() {
		on, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestCall)
		defer cancel()
		if bounded {
			on = volume.WithStartBy(on, deadline)
		}
		err := s.safely(on, verb, id, send)
		leave() // both before the answer, or the caller's next call would find them taken
		unlock()
		answered <- err
		if ctx.Err() != nil {
			s.log.InfoContext(ctx, "Nova has answered a request whose caller had left", "operation", verb, "volume", id, "server", server, "error", err)
		}
	})
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return volume.Errorf(volume.KindOf(ctx.Err()), "volume %s: Nova has not answered yet for server %s; a retry sees what comes of it: %w", id, server, ctx.Err()).Op(verb).AfterWrite()
	}
}

// safely turns a panic into an error: the recovery of the server does not reach an errand.
func (s *Service) safely(ctx context.Context, verb string, id volume.ID, send func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "a request to Nova panicked: please report this", "operation", verb, "volume", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = volume.Errorf(volume.Unknown, "volume %s: the driver failed in an unforeseen way; its log has the stack", id).Op(verb).AfterWrite()
		}
	}()
	return send(ctx)
}
