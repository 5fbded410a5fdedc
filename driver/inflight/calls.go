package inflight

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// RequestTimeout bounds a request whose caller has left. Package openstack gives the HTTP request itself two minutes and names the service
// that did not answer.
const RequestTimeout = 2*time.Minute + 30*time.Second

// Calls are requests that the driver completes even if their callers leave: the death of a sidecar must not lose the answer of a request. The
// zero value is ready.
type Calls struct{ inFlight sync.WaitGroup }

// Request describes a request that changes the cloud.
type Request struct {
	Verb    string       // "attach", for errors and logs
	Object  string       // "volume 1b4e… at server 9c2d…", for errors and logs
	Service string       // "Nova", for errors
	Log     *slog.Logger // gets the outcome where the caller has left
	// Release frees what the request occupies: its lock, and its turn in a queue. It runs before the caller gets the answer, since the next call
	// of the same caller must find both free.
	Release func()
}

// Complete sends a request and returns the answer. If ctx ends before that, it returns an error marked AfterWrite, and the request continues.
// The adapter sends nothing more after the end of ctx.
func Complete[T any](ctx context.Context, c *Calls, r Request, send func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	c.inFlight.Go(func() {
		outliving, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
		defer cancel()
		outliving = volume.WithCaller(outliving, ctx)
		var a answer
		a.err = r.reported(outliving, panics.Try(func() (err error) { a.value, err = send(outliving); return err }))
		r.Release()
		answered <- a
		if ctx.Err() != nil {
			r.Log.InfoContext(ctx, "the cloud answered a request whose caller had left", "operation", r.Verb, "object", r.Object, "error", a.err)
		}
	})
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, volume.Errorf(volume.KindOf(ctx.Err()), "%s: outcome unknown: %s has not answered yet; the request continues, and a retry observes its outcome: %w",
			r.Object, r.Service, ctx.Err()).Op(r.Verb).AfterWrite()
	}
}

// reported logs a panic of send, whose caller may have left, and returns the error of the request.
func (r Request) reported(ctx context.Context, err error) error {
	var defect *panics.Error
	if !errors.As(err, &defect) {
		return err
	}
	r.Log.ErrorContext(ctx, "a request to the cloud panicked; please report this", "operation", r.Verb, "object", r.Object, "panic", defect.What, "stack", defect.Stack)
	return volume.Errorf(volume.Unknown, "%s: the driver panicked in a request to %s; its log has the stack, please report it", r.Object, r.Service).Op(r.Verb).AfterWrite()
}

// Drain waits for the requests in flight, until ctx ends. It reports whether all have ended. No request may start after Drain.
func (c *Calls) Drain(ctx context.Context) bool {
	idle := make(chan struct{})
	go func() { c.inFlight.Wait(); close(idle) }()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
