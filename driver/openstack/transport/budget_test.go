package transport

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudgetAllowsABurstAndThenItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{}
		rt := NewBudget(5, 0, m).Limit(&fake{})
		begin := time.Now()
		sendN := func(n int, method string, want time.Duration) {
			t.Helper()
			for range n {
				if _, err := send(t.Context(), t, rt, method); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begin).Round(time.Millisecond); took != want {
				t.Errorf("%d times %s ended after %v, want %v", n, method, took, want)
			}
		}
		sendN(100, "GET", 0)
		sendN(10, "GET", 2*time.Second)
		sendN(1000, "POST", 2*time.Second) // writes do not wait for reads
		if m.waits != 10 {
			t.Errorf("%d requests waited, want 10", m.waits)
		}
	})
}

func TestAComplaintHalvesTheRateUntilItRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		complains := false
		m := &meter{}
		f := &fake{answer: func(int) answer {
			if complains {
				return answer{status: 429}
			}
			return answer{status: 200}
		}}
		rt := NewBudget(100, 100, m).Limit(f)
		sentIn := func(d time.Duration) int { // as many as twenty callers may send
			before := len(f.at)
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for ctx.Err() == nil {
						if _, err := send(ctx, t, rt, "GET"); err != nil {
							return
						}
						time.Sleep(250 * time.Millisecond)
					}
				})
			}
			all.Wait()
			return len(f.at) - before
		}
		if n := sentIn(10 * time.Second); n < 790 || n > 820 {
			t.Errorf("%d requests in 10 s before the complaint, want about 800", n)
		}
		complains = true
		_, _ = send(t.Context(), t, rt, "GET")
		_, _ = send(t.Context(), t, rt, "GET") // counts as the same complaint
		complains = false
		if limit := m.limits["read"]; limit < 35 || limit > 45 || m.limits["write"] != 100 {
			t.Errorf("limits %v after a complaint at 80 a second", m.limits)
		}
		if n := sentIn(4 * time.Second); n < 140 || n > 220 {
			t.Errorf("%d requests in 4 s at half of the rate", n)
		}
		time.Sleep(5 * time.Minute)
		_, _ = send(t.Context(), t, rt, "GET")
		if limit := m.limits["read"]; limit != 100 {
			t.Errorf("limit %v after five minutes without a complaint", limit)
		}
	})
}

func TestWithoutALimitOnlyComplaintsSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := 200
		m := &meter{}
		rt := NewBudget(0, 0, m).Limit(&fake{answer: func(int) answer { return answer{status: status} }})
		begin := time.Now()
		for range 10000 {
			_, _ = send(t.Context(), t, rt, "POST")
		}
		if time.Since(begin) != 0 || !math.IsInf(m.limits["write"], 1) {
			t.Errorf("%v, limits %v", time.Since(begin), m.limits)
		}
		status = 503
		for range 20 {
			_, _ = send(t.Context(), t, rt, "POST")
			time.Sleep(2 * time.Second)
		}
		if limit := m.limits["write"]; limit != minRate || m.complaints != 20 {
			t.Errorf("limit %v after %d complaints", limit, m.complaints)
		}
		status = 200
		time.Sleep(time.Hour)
		_, _ = send(t.Context(), t, rt, "POST")
		if !math.IsInf(m.limits["write"], 1) {
			t.Errorf("limit %v an hour later", m.limits["write"])
		}
	})
}

func TestAWaitBeyondTheDeadlineFailsAtOnceUnsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := answering(answer{status: 429, retryAfter: "20"})
		rt := NewBudget(0, 0, &meter{}).Limit(f)
		_, _ = send(t.Context(), t, rt, "POST")
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := send(soon, t, rt, "POST")
		if !errors.As(err, new(ThrottledError)) || !strings.Contains(err.Error(), "next write is allowed in 20s") || !NeverSent(err) || time.Since(begin) != 0 || len(f.at) != 1 {
			t.Errorf("%v after %v and %d requests", err, time.Since(begin), len(f.at))
		}
		if _, err := send(soon, t, rt, "GET"); err != nil {
			t.Errorf("reads must not wait for writes: %v", err)
		}
		if _, err := send(t.Context(), t, rt, "POST"); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v, want the cloud's twenty seconds", err, time.Since(begin))
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := send(leaving, t, rt, "POST"); !errors.Is(err, context.Canceled) || !NeverSent(err) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLoginsAreNotLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := NewBudget(1, 1, &meter{}).Limit(answering(answer{status: 503, retryAfter: "10"}))
		begin := time.Now()
		for range 100 {
			if _, err := sendTo(t.Context(), t, rt, http.MethodPost, "http://keystone/v3/auth/tokens"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := send(t.Context(), t, rt, "POST"); err != nil || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
