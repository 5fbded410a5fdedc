package volume

import (
	"context"
	"time"
)

// AnswerMargin is how long before the deadline of its caller an RPC ends, so that the answer reaches the caller in time.
const AnswerMargin = 2 * time.Second

type beforeDeadlineKey struct{}

// BeforeDeadline returns a context that ends two seconds before ctx does, or after nine tenths of a shorter time. The caller of the RPC then
// receives an error that says what the driver waited for, instead of a bare timeout. A context that already ends early gets no second margin.
func BeforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || ctx.Value(beforeDeadlineKey{}) != nil {
		return context.WithCancel(ctx)
	}
	ctx = context.WithValue(ctx, beforeDeadlineKey{}, true)
	return context.WithDeadline(ctx, deadline.Add(-min(AnswerMargin, time.Until(deadline)/10)))
}

// Sleep waits for d. It returns the error of ctx if that ended first, or ends at the same moment.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			<-ctx.Done() // it ends at this moment
		}
	}
	return ctx.Err()
}
