package driver

import (
	"context"
	"time"
)

const (
	checkAge     = 5 * time.Second // how long an answer counts
	checkTimeout = 5 * time.Second
)

// shared is an answer for everybody who reaches the pages, as often as they like. It is at most age older than the request.
type shared[T any] struct {
	age    time.Duration
	ask    func(context.Context) T
	busy   chan struct{} // lock of the fields below, held during a question
	asked  time.Time     // when the last question began
	answer T
}

func newShared[T any](age time.Duration, ask func(context.Context) T) *shared[T] {
	return &shared[T]{age: age, ask: ask, busy: make(chan struct{}, 1)}
}

// get returns the present answer, or asks for a new one. The question does not end with its caller, because others wait for the answer too.
// The error is that of ctx.
func (s *shared[T]) get(ctx context.Context) (answer T, err error) {
	requested := time.Now()
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	if s.asked.IsZero() || requested.Sub(s.asked) >= s.age {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		now := time.Now()
		s.answer = s.ask(ctx)
		s.asked = now // not after a panic
	}
	return s.answer, nil
}

// sharedCheck shares the answer of a check, such as whether every cloud answers.
func sharedCheck(ask func(context.Context) error) func(context.Context) error {
	check := newShared(checkAge, ask)
	return func(ctx context.Context) error {
		answer, err := check.get(ctx)
		if err != nil {
			return err
		}
		return answer
	}
}
