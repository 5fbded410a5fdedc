package volume

import "context"

type oneAttemptKey struct{}

// WithOneAttempt returns a context for a request that the adapter does not repeat when it fails, because the caller has another way.
func WithOneAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, oneAttemptKey{}, true)
}

// OneAttempt reports whether ctx is for a request that is not repeated.
func OneAttempt(ctx context.Context) bool { return ctx.Value(oneAttemptKey{}) != nil }
