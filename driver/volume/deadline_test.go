package volume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBeforeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{time.Minute: 58 * time.Second, 10 * time.Second: 9 * time.Second} {
			parent, cancelParent := context.WithTimeout(t.Context(), timeout)
			ctx, cancel := BeforeDeadline(parent)
			began := time.Now()
			ctx, cancelAgain := BeforeDeadline(ctx) // the margin counts once
			<-ctx.Done()
			cancelAgain()
			if took := time.Since(began); took != want || parent.Err() != nil {
				t.Errorf("%s: want the end after %s, got it after %s", timeout, want, took)
			}
			cancel()
			cancelParent()
		}
		ctx, cancel := BeforeDeadline(t.Context())
		if _, ok := ctx.Deadline(); ok {
			t.Error("want no deadline where there is none")
		}
		cancel()
	})
}
