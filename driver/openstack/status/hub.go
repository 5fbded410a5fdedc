package status

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Meter measures a hub. Its methods are called from any goroutine and must not block.
type Meter interface {
	// Waiting reports the number of waiters, and when the oldest of them began; zero without waiters.
	Waiting(waiters int, oldest time.Time)
	// Called reports one request: "single" (one object), "list" (everything) or "changes" (what changed).
	Called(how string)
}

type noMeter struct{}

func (noMeter) Waiting(int, time.Time) {}
func (noMeter) Called(string)          {}

type hub[ID ~string, T any] struct {
	kind   kind[ID, T]
	meter  Meter
	join   chan *waiter[ID, T]
	left   chan struct{} // a waiter has left since the loop last checked
	closed chan struct{}
	close  func() // closes it, once
}

func newHub[ID ~string, T any](k kind[ID, T]) *hub[ID, T] {
	closed := make(chan struct{})
	return &hub[ID, T]{
		kind: k, meter: noMeter{}, join: make(chan *waiter[ID, T]), left: make(chan struct{}, 1), closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// WithMeter makes the hub report to m. The caller calls it before Run.
func (h *hub[ID, T]) WithMeter(m Meter) *hub[ID, T] {
	h.meter = m
	return h
}

// Await implements volume.Waiter and volume.SnapshotWaiter. While the cloud cannot be reached, the wait goes on. Any other error of the
// cloud ends it. After Run has ended, the error is Unavailable.
func (h *hub[ID, T]) Await(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error) {
	return h.wait(ctx, &waiter[ID, T]{id: id}, func(r result[T]) (bool, error) {
		switch {
		case r.absent():
			return done(r.object, false)
		case transient(r.err):
			return false, nil
		case r.err != nil:
			return true, r.err
		}
		return done(r.object, true)
	})
}

// Read reads one object once. Callers that read it at the same time share the answer. The answer was read after the call began, and an
// error of the cloud is the answer too.
func (h *hub[ID, T]) Read(ctx context.Context, id ID) (T, error) {
	return h.wait(ctx, &waiter[ID, T]{id: id, once: true}, func(r result[T]) (bool, error) { return true, r.err })
}

func (h *hub[ID, T]) wait(ctx context.Context, w *waiter[ID, T], done func(result[T]) (bool, error)) (T, error) {
	var none T
	ctx, leave := context.WithCancel(ctx)
	defer func() {
		leave() // the loop drops waiters whose context has ended
		select {
		case h.left <- struct{}{}:
		default:
		}
	}()
	w.ctx, w.results = ctx, make(chan result[T], 1)
	var last *result[T] // nil before the first
	for join := h.join; ; {
		select {
		case join <- w:
			join = nil // once
		case r := <-w.results:
			last = &r
			volume.NoteState(ctx, h.kind.noun+" "+string(w.id)+": "+h.describe(last))
			if finished, err := done(r); finished || err != nil {
				return r.object, err
			}
		case <-h.closed:
			return none, h.stopping(w.id)
		case <-ctx.Done():
			return none, h.interrupted(ctx, w.id, last)
		}
	}
}

// transient reports whether the next poll may succeed after this error. A poll may exceed its own deadline; the waiter checks the
// waiter's.
func transient(err error) bool {
	switch volume.KindOf(err) {
	case volume.Unavailable, volume.Busy, volume.DeadlineExceeded, volume.Canceled:
		return err != nil
	}
	return false
}

func (h *hub[ID, T]) stopping(id ID) error {
	return volume.Errorf(volume.Unavailable, "%s %s: the driver is stopping; a retry resumes the wait", h.kind.noun, id).Cause(cause.DriverStopping).Op("wait")
}

// interrupted is the error of a waiter whose context ended, with the latest result.
func (h *hub[ID, T]) interrupted(ctx context.Context, id ID, last *result[T]) error {
	err := volume.Interrupted(ctx, "%s %s: %s; a retry resumes the wait", h.kind.noun, id, h.describe(last)).Op("wait")
	if last == nil || last.err == nil || last.absent() {
		return err
	}
	return err.Because(errors.Join(ctx.Err(), volume.UnreadError{Cause: last.err}))
}

// describe says in a clause what the latest result of a waiter was; nil is none.
func (h *hub[ID, T]) describe(last *result[T]) string {
	switch {
	case last == nil:
		return "the driver has not read it yet"
	case last.absent():
		return "it does not exist"
	case last.err != nil:
		return "the last read failed: " + last.err.Error()
	}
	return "its status is " + string(h.kind.stateOf(last.object).status)
}
