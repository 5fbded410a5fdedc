package inflight

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// sleep is a request that takes that long, and whose caller has left.
func sleep(t *testing.T, c *Calls, takes time.Duration) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err := Complete(ctx, c, request(func() {}), func(context.Context) (int, error) { time.Sleep(takes); return 0, nil })
	if !volume.Is(err, volume.Canceled) {
		t.Fatal(err)
	}
}

func request(release func()) Request {
	return Request{Verb: "create", Object: "volume pvc-1", Service: "Cinder", Log: slog.New(slog.DiscardHandler), Release: release}
}

func TestTheCallerGetsTheAnswerAfterTheRelease(t *testing.T) {
	var c Calls
	refused, released := errors.New("refused"), false
	got, err := Complete(t.Context(), &c, request(func() { released = true }), func(context.Context) (int, error) { return 7, refused })
	if got != 7 || !errors.Is(err, refused) || !released {
		t.Errorf("got %d, %v, released %t", got, err, released)
	}
}

func TestARequestContinuesWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		var log bytes.Buffer
		r := request(func() {})
		r.Log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		completed := false
		_, err := Complete(ctx, &c, r, func(ctx context.Context) (int, error) {
			if by, ok := volume.StartBy(ctx); !ok || time.Until(by) != 2*time.Second {
				t.Errorf("it may begin until %v", by)
			}
			select {
			case <-time.After(time.Minute):
				completed = true
			case <-ctx.Done():
			}
			return 0, ctx.Err()
		})
		if !volume.Is(err, volume.DeadlineExceeded) || !volume.MayHaveWritten(err) || !strings.Contains(err.Error(), "create: volume pvc-1: outcome unknown: Cinder has not answered yet") {
			t.Errorf("got %v", err)
		}
		if !c.Drain(t.Context()) || !completed || !strings.Contains(log.String(), "whose caller had left") {
			t.Errorf("completed %t; log: %s", completed, &log)
		}
	})
}

func TestARequestWithoutAnAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		began := time.Now()
		_, err := Complete(t.Context(), &c, request(func() {}), func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != RequestTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestAPanicInARequestIsAnErrorAndReleases(t *testing.T) {
	var c Calls
	released := false
	_, err := Complete(t.Context(), &c, request(func() { released = true }), func(context.Context) (int, error) { panic("a defect") })
	if !volume.Is(err, volume.Unknown) || !volume.MayHaveWritten(err) || !released {
		t.Errorf("%v, released %t", err, released)
	}
}

func TestDrainWaitsForCallsUntilItsContextEnds(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, want time.Duration
		drained       bool
	}{
		"the call ends":    {timeout: time.Minute, want: 20 * time.Second, drained: true},
		"the context ends": {timeout: 8 * time.Second, want: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c Calls
				sleep(t, &c, 20*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				began := time.Now()
				if drained := c.Drain(ctx); drained != test.drained || time.Since(began) != test.want {
					t.Errorf("want %t after %v, got %t after %v", test.drained, test.want, drained, time.Since(began))
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestDrainWithoutCallsReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		began := time.Now()
		if !c.Drain(t.Context()) || time.Since(began) != 0 {
			t.Errorf("after %v", time.Since(began))
		}
	})
}
