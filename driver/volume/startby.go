package volume

import (
	"context"
	"time"
)

type callerKey struct{}

// WithCaller returns a context for a request that outlives its caller. Only a request in progress does. After the caller has left the adapter
// sends none: neither one that waits for a login or for its turn, nor a retry.
func WithCaller(ctx, caller context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerLeft returns why nobody waits for a request that is not sent yet. It returns nil while the caller waits, and for a context without
// WithCaller.
func CallerLeft(ctx context.Context) error {
	caller, outlives := ctx.Value(callerKey{}).(context.Context)
	if !outlives {
		return nil
	}
	if by, ends := caller.Deadline(); ends && !time.Now().Before(by) {
		return context.DeadlineExceeded // perhaps a moment before the timer of the context
	}
	return caller.Err()
}

// StartBy returns the time by which a request must be sent: the deadline of ctx or of its caller, whichever is earlier.
func StartBy(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	if caller, outlives := ctx.Value(callerKey{}).(context.Context); outlives {
		if by, ends := caller.Deadline(); ends && (!bounded || by.Before(deadline)) {
			return by, true
		}
	}
	return deadline, bounded
}
