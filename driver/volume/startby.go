package volume

import (
	"context"
	"time"
)

type startByKey struct{}

// WithStartBy returns a context that goes on after its caller's deadline, by which requests under it must have been sent: one that the
// budget would hold back for longer, or that would be repeated later, is not sent.
func WithStartBy(ctx context.Context, deadline time.Time) context.Context {
	return context.WithValue(ctx, startByKey{}, deadline)
}

// StartBy is the time by which a request under ctx must have been sent: ctx's deadline, or that of a caller which it outlives.
func StartBy(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	if by, outlives := ctx.Value(startByKey{}).(time.Time); outlives && (!bounded || by.Before(deadline)) {
		return by, true
	}
	return deadline, bounded
}
