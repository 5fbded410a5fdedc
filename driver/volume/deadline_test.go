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

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			timeout, sleep time.Duration
			want           error
		}{{time.Minute, time.Second, nil}, {time.Second, time.Second, context.DeadlineExceeded}, {time.Second, time.Minute, context.DeadlineExceeded}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			began := time.Now()
			if got := Sleep(ctx, c.sleep); got != c.want || time.Since(began) != min(c.timeout, c.sleep) {
				t.Errorf("%+v: got %v after %s", c, got, time.Since(began))
			}
			if err := Interrupted(ctx, "read %s", "x"); c.want != nil && (!Is(err, DeadlineExceeded) || err.Error() != "read x: context deadline exceeded") {
				t.Errorf("want the error of the deadline, got %v", err)
			}
			cancel()
		}
	})
}
