package volume

import (
	"context"
	"time"
)

type startByKey struct{}

// WithStartBy returns a context for a call that outlives its caller. The adapter sends no request after the deadline of the caller: neither one
// that the request budget delays for longer, nor a retry.
func WithStartBy(ctx context.Context, deadline time.Time) context.Context {
	return context.WithValue(ctx, startByKey{}, deadline)
}

// StartBy returns the time by which a request must be sent: the deadline of ctx, or the deadline given to WithStartBy if that is earlier.
func StartBy(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	if by, outlives := ctx.Value(startByKey{}).(time.Time); outlives && (!bounded || by.Before(deadline)) {
		return by, true
	}
	return deadline, bounded
}
