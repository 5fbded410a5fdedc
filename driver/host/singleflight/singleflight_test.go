package singleflight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/panics"
)

func TestCallersShareOneCallAndEachWaitsAtMostUntilItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, int]
		unblock, calls := make(chan struct{}), 0
		read := func() int { calls++; <-unblock; return 7 }

		first, fresh := g.Start("a", read)
		if _, unresponsive := g.Unresponsive("a"); !fresh || unresponsive {
			t.Errorf("want a new call that nobody gave up on, got fresh %t, unresponsive %t", fresh, unresponsive)
		}
		began := time.Now()
		if first.WaitUntil(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("want no answer after a second, waited %s", time.Since(began))
		}
		second, fresh := g.Start("a", read)
		if fresh || second != first || second.WaitUntil(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("want the second caller to join and not to wait again, got fresh %t, waited %s", fresh, time.Since(began))
		}
		if since, unresponsive := g.Unresponsive("a"); !unresponsive || since != began {
			t.Errorf("want it unresponsive since %s, got %t, %s", began, unresponsive, since)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if first.Wait(ctx) {
			t.Error("want no answer once the context has ended")
		}
		close(unblock)
		if !second.Wait(t.Context()) || second.Value != 7 || calls != 1 {
			t.Errorf("want 7 from one call, got %d from %d", second.Value, calls)
		}
		synctest.Wait()
		if !second.Wait(ctx) { // an answer counts even if the context has ended
			t.Error("want the answer")
		}
		if _, unresponsive := g.Unresponsive("a"); unresponsive {
			t.Error("want no call in progress")
		}
		if again, fresh := g.Start("a", read); !fresh || !again.Wait(t.Context()) || calls != 2 {
			t.Errorf("want a new call, got fresh %t after %d calls", fresh, calls)
		}
	})
}

// A panic of the shared call is one of each caller, whose RPC recovers it, and the next call runs.
func TestAPanicOfTheCallIsOneOfItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[string, bool]
		unblock := make(chan struct{})
		call, _ := g.Start("a", func() bool { <-unblock; panic("index out of range") })
		panicOf := func(ctx context.Context) error { return panics.Try(func() error { call.Wait(ctx); return nil }) }
		before := panics.Seen()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got := panicOf(ended); got != nil {
			t.Errorf("want no panic of a caller that leaves before, got %v", got)
		}
		close(unblock)
		for range 2 {
			var got *panics.Error
			if err := panicOf(t.Context()); !errors.As(err, &got) || got.What != "index out of range" || !strings.Contains(got.Stack, "singleflight_test.go") {
				t.Errorf("want the panic with its stack, got %v", err)
			}
		}
		if n := panics.Seen() - before; n != 1 {
			t.Errorf("want one panic counted, got %d", n)
		}
		if next, fresh := g.Start("a", func() bool { return true }); !fresh || !next.Wait(t.Context()) || !next.Value {
			t.Error("want the next call to run")
		}
	})
}
