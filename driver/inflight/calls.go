package inflight

import (
	"context"
	"sync"
)

// Calls are requests that the driver completes even if their callers leave. The zero value is ready.
type Calls struct{ inFlight sync.WaitGroup }

// Go runs call in a goroutine of its own.
func (c *Calls) Go(call func()) { c.inFlight.Go(call) }

// Drain waits for the calls in flight, until ctx ends. It reports whether all have ended. No call may start after Drain.
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
