package driver

import (
	"context"
	"time"
)

const (
	checkAge     = 5 * time.Second // how long an answer counts
	checkTimeout = 5 * time.Second
)

// sharedCheck asks a question, such as whether every cloud answers, at most once in checkAge. Everybody who reaches the pages may request it,
// as often as they like.
type sharedCheck struct {
	ask  func(context.Context) error
	busy chan struct{} // lock of the fields below, held during a question
	at   time.Time     // when the last one ended
	err  error         // its answer
}

func newSharedCheck(ask func(context.Context) error) *sharedCheck {
	return &sharedCheck{ask: ask, busy: make(chan struct{}, 1)}
}

// check returns the present answer, or asks for a new one. The question does not end with its caller, because others wait for the answer too.
func (r *sharedCheck) check(ctx context.Context) error {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.at.IsZero() || time.Since(r.at) >= checkAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		r.err, r.at = r.ask(ctx), time.Now()
	}
	return r.err
}
