// Package status answers the question every controller RPC ends with: has it happened yet?
//
// One loop polls the cloud for all waiters. A waiter gets answers that were read after it began to wait, or its context's error;
// never a guess. Nothing is polled while nobody waits, and nothing here changes anything in the cloud.
package status

import (
	"context"
	"errors"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Poller is what the hub reads the cloud through.
type Poller interface {
	// Volume reads one volume; NotFound when there is none.
	Volume(ctx context.Context, id volume.ID) (volume.Volume, error)
	// Volumes reads one page of the project's volumes. NotFound when the marker's volume is gone.
	Volumes(ctx context.Context, page volume.Page) ([]volume.Volume, error)
}

// Hub is a volume.Waiter for any number of waiters. It works while Run does.
type Hub struct {
	poller Poller
	join   chan *waiter
	closed chan struct{}
}

var _ volume.Waiter = (*Hub)(nil)

// NewHub makes a hub; Run brings it to life.
func NewHub(p Poller) *Hub {
	return &Hub{poller: p, join: make(chan *waiter), closed: make(chan struct{})}
}

// reading is one answer of the cloud about one volume.
type reading struct {
	volume volume.Volume
	ok     bool  // the volume exists
	err    error // neither is known
}

// Await implements volume.Waiter. A cloud that cannot be reached is asked again until ctx ends; a cloud that refuses to tell ends
// the wait with its error. After Run has ended the answer is Unavailable.
func (h *Hub) Await(ctx context.Context, id volume.ID, done func(v volume.Volume, ok bool) (bool, error)) (volume.Volume, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave() // the loop drops waiters whose context has ended
	w := &waiter{ctx: ctx, id: id, readings: make(chan reading, 1)}
	var last *reading // nil until there is one
	select {
	case h.join <- w:
	case <-h.closed:
		return volume.Volume{}, stopping(id)
	case <-ctx.Done():
		return volume.Volume{}, interrupted(ctx, id, last)
	}
	for {
		select {
		case r := <-w.readings:
			last = &r
			if transient(last.err) {
				continue
			}
			if last.err != nil {
				return volume.Volume{}, last.err
			}
			if finished, err := done(last.volume, last.ok); finished || err != nil {
				return last.volume, err
			}
		case <-h.closed:
			return volume.Volume{}, stopping(id)
		case <-ctx.Done():
			return volume.Volume{}, interrupted(ctx, id, last)
		}
	}
}

// transient reports that a poll failed in a way that the next one may not. A poll's own deadline is such a way; the waiter's is
// seen by the waiter.
func transient(err error) bool {
	switch volume.KindOf(err) {
	case volume.Unavailable, volume.Busy, volume.DeadlineExceeded, volume.Canceled:
		return err != nil
	}
	return false
}

func stopping(id volume.ID) error {
	return volume.Errorf(volume.Unavailable, "volume %s: the driver is stopping; a retry resumes the wait", id).Op("wait")
}

// interrupted is the error of a waiter whose context ended, with what was last seen.
func interrupted(ctx context.Context, id volume.ID, last *reading) error {
	kind := volume.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = volume.DeadlineExceeded
	}
	var seen string
	switch {
	case last == nil:
		seen = "it has not been read yet"
	case last.err != nil:
		seen = "the last try to read it failed: " + last.err.Error()
	case last.ok:
		seen = "it is " + string(last.volume.Status)
	default:
		seen = "it does not exist"
	}
	return volume.Errorf(kind, "volume %s: %s; a retry resumes the wait: %w", id, seen, ctx.Err()).Op("wait")
}
