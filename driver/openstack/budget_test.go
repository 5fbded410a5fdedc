package openstack

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

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// noted is a BudgetMeter that remembers.
type noted struct {
	mu         sync.Mutex
	limits     map[string]float64
	waits      int
	complaints int
}

func (n *noted) Limited(kind string, perSecond float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.limits == nil {
		n.limits = map[string]float64{}
	}
	n.limits[kind] = perSecond
}

func (n *noted) Waited(string, time.Duration) { n.mu.Lock(); n.waits++; n.mu.Unlock() }
func (n *noted) Complained(string, int)       { n.mu.Lock(); n.complaints++; n.mu.Unlock() }

// counting answers every request alike and notes when it came.
type counting struct {
	mu     sync.Mutex
	status func() (int, string) // status and Retry-After
	at     []time.Time
}

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
	status, after := 200, ""
	if c.status != nil {
		status, after = c.status()
	}
	header := http.Header{}
	if after != "" {
		header.Set("Retry-After", after)
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody}, nil
}

func ask(ctx context.Context, t *testing.T, rt http.RoundTripper, method string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://cinder/v3/volumes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func TestABudgetLetsABurstThroughAndThenItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud, meter := &counting{}, &noted{}
		rt := NewBudget(5, 0, meter).Spend(cloud)
		begin := time.Now()
		for range 100 {
			if err := ask(t.Context(), t, rt, http.MethodGet); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the burst took %v", took)
		}
		for range 10 {
			_ = ask(t.Context(), t, rt, http.MethodGet)
		}
		if took := time.Since(begin).Round(time.Millisecond); took != 2*time.Second || meter.waits != 10 {
			t.Errorf("ten more took %v and %d waits, want 2 s and 10", took, meter.waits)
		}
		for range 1000 {
			_ = ask(t.Context(), t, rt, http.MethodPost)
		}
		if took := time.Since(begin).Round(time.Millisecond); took != 2*time.Second {
			t.Errorf("writes waited for reads: %v", took)
		}
	})
}

func TestAComplaintHalvesTheRateAndPatienceRestoresIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		complains := false
		cloud, meter := &counting{}, &noted{}
		cloud.status = func() (int, string) {
			if complains {
				return 429, ""
			}
			return 200, ""
		}
		rt := NewBudget(100, 100, meter).Spend(cloud)
		spend := func(d time.Duration) int { // as many as the budget lets through, from twenty callers
			before := len(cloud.at)
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for ctx.Err() == nil && ask(ctx, t, rt, http.MethodGet) == nil {
						time.Sleep(250 * time.Millisecond)
					}
				})
			}
			all.Wait()
			return len(cloud.at) - before
		}
		if n := spend(10 * time.Second); n < 790 || n > 820 {
			t.Errorf("%d requests in 10 s before the complaint, want about 800", n)
		}
		complains = true
		_ = ask(t.Context(), t, rt, http.MethodGet)
		_ = ask(t.Context(), t, rt, http.MethodGet) // the same storm
		complains = false
		if limit := meter.limits["read"]; limit < 35 || limit > 45 || meter.limits["write"] != 100 {
			t.Errorf("limits %v after one storm of complaints at 80 a second", meter.limits)
		}
		if n := spend(4 * time.Second); n < 140 || n > 220 {
			t.Errorf("%d requests in 4 s at half of the rate", n)
		}
		time.Sleep(5 * time.Minute)
		_ = ask(t.Context(), t, rt, http.MethodGet)
		if limit := meter.limits["read"]; limit != 100 {
			t.Errorf("limit %v after five quiet minutes", limit)
		}
	})
}

func TestWithoutALimitOnlyComplaintsSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := 200
		cloud, meter := &counting{}, &noted{}
		cloud.status = func() (int, string) { return status, "" }
		rt := NewBudget(0, 0, meter).Spend(cloud)
		begin := time.Now()
		for range 10000 {
			_ = ask(t.Context(), t, rt, http.MethodPost)
		}
		if time.Since(begin) != 0 || !math.IsInf(meter.limits["write"], 1) {
			t.Errorf("%v, limits %v", time.Since(begin), meter.limits)
		}
		status = 503
		for range 20 {
			_ = ask(t.Context(), t, rt, http.MethodPost)
			time.Sleep(2 * time.Second)
		}
		if limit := meter.limits["write"]; limit != lowest {
			t.Errorf("limit %v while the cloud goes on complaining", limit)
		}
		status = 200
		time.Sleep(time.Hour)
		_ = ask(t.Context(), t, rt, http.MethodPost)
		if !math.IsInf(meter.limits["write"], 1) {
			t.Errorf("limit %v an hour later", meter.limits["write"])
		}
	})
}

func TestAWaitBeyondTheDeadlineFailsAtOnceUnsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &counting{}
		cloud.status = func() (int, string) { return 429, "20" }
		rt := NewBudget(0, 0, &noted{}).Spend(cloud)
		_ = ask(t.Context(), t, rt, http.MethodPost)
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		err := ask(soon, t, rt, http.MethodPost)
		if !errors.As(err, new(errThrottled)) || time.Since(begin) != 0 || len(cloud.at) != 1 {
			t.Errorf("%v after %v and %d requests", err, time.Since(begin), len(cloud.at))
		}
		failure := requestError(soon, request{call: attach, verb: "attach volume", object: "volume v"}, err, &sending{})
		if !volume.Is(failure, volume.Unavailable) || failure.Sent || !strings.Contains(failure.Error(), "not sent") {
			t.Errorf("error %v, sent %v", failure, failure.Sent)
		}
		if err := ask(soon, t, rt, http.MethodGet); err != nil {
			t.Errorf("reads must not wait for writes: %v", err)
		}
		if err := ask(t.Context(), t, rt, http.MethodPost); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v, want the cloud's twenty seconds kept", err, time.Since(begin))
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := ask(leaving, t, rt, http.MethodPost); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// Behaviour check 9 of upstream's failures: 429 with Retry-After: 2 becomes a success after waiting.
func TestCheck9TooManyRequestsBecomeASuccessAfterTheCloudsPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		cloud := &counting{}
		cloud.status = func() (int, string) {
			if first {
				first = false
				return 429, "2"
			}
			return 200, ""
		}
		rt := Retry{Next: NewBudget(100, 50, &noted{}).Spend(cloud), Rand: func() float64 { return 0 }}
		begin := time.Now()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://cinder/v3/volumes", strings.NewReader("{}"))
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 || time.Since(begin) != 2*time.Second {
			t.Errorf("%v, %v after %v", resp, err, time.Since(begin))
		}
	})
}

func TestLoginsAreNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &counting{status: func() (int, string) { return 503, "10" }}
		rt := NewBudget(1, 1, &noted{}).Spend(cloud)
		begin := time.Now()
		for range 100 {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://keystone/v3/auth/tokens", http.NoBody)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		if err := ask(t.Context(), t, rt, http.MethodPost); err != nil || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
