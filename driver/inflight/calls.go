package inflight

import (
	"context"
	"sync"
)

// Calls are requests that the driver completes whether or not their callers stay. The zero value is ready. A restart loses only the wait
// for them: Drain awaits them before a clean exit.
type Calls struct{ inFlight sync.WaitGroup }

// Go runs call in a goroutine of its own.
func (c *Calls) Go(call func()) { c.inFlight.Go(call) }

// Drain waits until ctx ends for the calls in flight; no new one may start. It reports whether all have ended.
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
