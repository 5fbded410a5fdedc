package inflight

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

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
				c.Go(func() { time.Sleep(20 * time.Second) })
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
