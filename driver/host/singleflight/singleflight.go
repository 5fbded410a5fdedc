// Package singleflight shares one call among all callers that ask for the same key, and keeps no caller longer than the
// caller wants.
//
// A read of a dead disk or file system may block in the kernel for ever, and nothing can end it. So each such call runs
// once in a goroutine of its own, and costs one thread however often it is requested. golang.org/x/sync/singleflight
// does not tell when a call began, which decides how long a later caller still waits.
package singleflight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Group holds the calls in progress, by key. The zero value is ready for use.
type Group[K comparable, V any] struct {
	calls sync.Map // K -> *Call[V]
}

// Call is one call in progress, or one that has ended.
type Call[V any] struct {
	Started time.Time
	// Done is closed when the call has returned; Value may be read then.
	Done  chan struct{}
	Value V
	// Reported lets the first caller that gives up report it once.
	Reported sync.Once

	abandoned atomic.Bool // a caller gave up
	panicked  error       // a *panics.Error; nil if the call returned
}

// Start runs fn in a goroutine, unless a call for the key is in progress. It returns that call; fresh is true for a new
// one. If fn panics, so does each caller that waits for it. The recovery of an RPC does not protect the goroutine, and the zero Value would be
// an answer.
func (g *Group[K, V]) Start(key K, fn func() V) (call *Call[V], fresh bool) {
	call = &Call[V]{Started: time.Now(), Done: make(chan struct{})}
	if earlier, loaded := g.calls.LoadOrStore(key, call); loaded {
		return earlier.(*Call[V]), false
	}
	go func() {
		defer close(call.Done)
		defer g.calls.Delete(key)
		call.panicked = panics.Try(func() error { call.Value = fn(); return nil })
	}()
	return call, true
}

// Running returns the call for the key that is in progress.
func (g *Group[K, V]) Running(key K) (*Call[V], bool) {
	call, ok := g.calls.Load(key)
	if !ok {
		return nil, false
	}
	return call.(*Call[V]), true
}

// Unresponsive returns since when a call for the key has been in progress. It returns false if there is none, or no
// caller has given up on it yet.
func (g *Group[K, V]) Unresponsive(key K) (since time.Time, ok bool) {
	call, ok := g.Running(key)
	if !ok || !call.abandoned.Load() {
		return time.Time{}, false
	}
	return call.Started, true
}

// Wait reports whether the call returned before ctx ended. A false result marks the call as unresponsive.
func (c *Call[V]) Wait(ctx context.Context) bool {
	select {
	case <-c.Done:
		return c.returned()
	case <-ctx.Done():
	}
	select {
	case <-c.Done: // at the same moment
		return c.returned()
	default:
		c.abandoned.Store(true)
		return false
	}
}

// WaitUntil is Wait with a limit. The limit counts from the start of the call, so a caller that joins a blocked call
// does not wait for the whole limit again.
func (c *Call[V]) WaitUntil(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithDeadline(ctx, c.Started.Add(limit))
	defer cancel()
	return c.Wait(ctx)
}

func (c *Call[V]) returned() bool {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return true
}
