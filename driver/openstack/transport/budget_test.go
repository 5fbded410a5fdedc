package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
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

// complaining is a cloud that answers 429 while complains is true, and 200 otherwise.
func complaining(complains *bool) *fake {
	return &fake{answer: func(int) answer {
		if *complains {
			return answer{status: 429}
		}
		return answer{status: 200}
	}}
}

func TestAComplaintHalvesTheRateUntilItRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		complains := false
		m := &meter{}
		f := complaining(&complains)
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
		if m.limits["read"] != 50 || m.limits["write"] != 100 {
			t.Errorf("limits %v after a complaint, want half of the limit for reads", m.limits)
		}
		if n := sentIn(4 * time.Second); n < 190 || n > 210 {
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
		status = 429
		_, _ = send(t.Context(), t, rt, "POST")
		if limit := m.limits["write"]; limit != unlimitedRate/2 {
			t.Errorf("limit %v after the first complaint", limit)
		}
		for range 19 {
			time.Sleep(2 * time.Second)
			_, _ = send(t.Context(), t, rt, "POST")
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

// sentAfter sends one read for each answer of a script, and then so many at once. It returns when each of the latter was sent.
func sentAfter(t *testing.T, reads int, script ...answer) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		f := answering(append(script, answer{status: 200})...)
		rt := NewBudget(100, 100, &meter{}).Limit(f)
		for range script {
			if _, err := send(t.Context(), t, rt, "GET"); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		var all sync.WaitGroup
		for range reads {
			all.Go(func() { _, _ = send(t.Context(), t, rt, "GET") })
		}
		all.Wait()
		for _, sent := range f.at[len(script):] {
			at = append(at, sent.Sub(begin))
		}
	})
	return at
}

// mostIn is the largest number of requests that were sent in one second.
func mostIn(at []time.Duration) (most int) {
	for i := range at {
		n := 0
		for _, other := range at[i:] {
			if other-at[i] < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestOneComplaintOfAnIdleDriverHalvesTheLimitAndNotItsTraffic(t *testing.T) {
	t.Parallel()
	at := sentAfter(t, 300, answer{status: 429})
	if last := at[len(at)-1]; last > 6*time.Second {
		t.Errorf("300 reads took %v, want half of the limit of 100 a second", last)
	}
}

// A restart of the API, or a proxy without backends, is not about the number of requests.
func TestA503WithoutRetryAfterIsNoComplaint(t *testing.T) {
	t.Parallel()
	for range 3 {
		if at := sentAfter(t, 300, answer{status: 503}, answer{status: 503}); at[len(at)-1] != 0 {
			t.Errorf("300 reads took %v after a 503", at[len(at)-1])
		}
	}
	if at := sentAfter(t, 2, answer{status: 503, retryAfter: "7"}); at[0] != 7*time.Second || at[1] != 7*time.Second+20*time.Millisecond {
		t.Errorf("sent at %v after a 503 with Retry-After", at)
	}
}

func TestRequestsAfterAPauseAreSpread(t *testing.T) {
	t.Parallel()
	at := sentAfter(t, 300, answer{status: 429, retryAfter: "10"})
	if at[0] != 10*time.Second || mostIn(at) > 56 {
		t.Errorf("the first after %v, at most %d in a second; want the pause, and then 50 a second", at[0], mostIn(at))
	}
}

func TestAShorterPauseDoesNotReplaceALongerOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100, 100, &meter{})
		begin := time.Now()
		for _, pause := range []string{"20", "2", "0"} { // of requests that were in flight together
			b.complained(b.reads, &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {pause}}})
		}
		if err := b.reads.wait(t.Context(), time.Time{}); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v, want the longest pause", err, time.Since(begin))
		}
	})
}

// What waits follows the rate as it recovers, and does not keep the turn that the slow rate had given it.
func TestAQueueFollowsTheRateThatRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		complains := true
		m := &meter{}
		f := complaining(&complains)
		rt := NewBudget(100, 100, m).Limit(f)
		for range 10 {
			_, _ = send(t.Context(), t, rt, "GET")
			time.Sleep(complaintWindow)
		}
		complains = false
		if m.limits["read"] != minRate {
			t.Fatalf("limits %v", m.limits)
		}
		begin := time.Now()
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				if _, err := send(t.Context(), t, rt, "GET"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("300 reads took %v; the rate rises by 5 a second every five seconds", took)
		}
	})
}

func TestALimitBelowOneRequestASecondIsNotRaisedByAComplaint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{}
		rt := NewBudget(0.5, 0.5, m).Limit(answering(answer{status: 429}))
		if _, err := send(t.Context(), t, rt, "GET"); err != nil || m.limits["read"] != 0.5 {
			t.Errorf("%v, limits %v", err, m.limits)
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
		if !errors.As(err, new(ThrottledError)) || !strings.Contains(err.Error(), "a pause until 00:00:20 UTC") || !NeverSent(err) || time.Since(begin) != 0 || len(f.at) != 1 {
			t.Errorf("%v after %v and %d requests", err, time.Since(begin), len(f.at))
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

// Requests in flight are answered in any order. The longest pause that the cloud asked for counts.
func TestAShorterRetryAfterDoesNotShortenAPause(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string][]answer{
		"longer first":  {{status: 429, retryAfter: "20"}, {status: 429, retryAfter: "2"}, {status: 200}},
		"shorter first": {{status: 429, retryAfter: "2"}, {status: 429, retryAfter: "20"}, {status: 200}},
		"then none":     {{status: 429, retryAfter: "20"}, {status: 503, retryAfter: "0"}, {status: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := make(chan struct{}) // until both complaints are requests in flight
				f := answering(pauses...)
				rt := NewBudget(0, 0, &meter{}).Limit(roundTrip(func(req *http.Request) (*http.Response, error) {
					<-slow
					return f.RoundTrip(req)
				}))
				var inFlight sync.WaitGroup
				for range 2 {
					inFlight.Go(func() { _, _ = send(t.Context(), t, rt, "POST") })
				}
				synctest.Wait()
				close(slow)
				inFlight.Wait()
				begin := time.Now()
				if status, err := send(t.Context(), t, rt, "POST"); err != nil || status != 200 || time.Since(begin) != 20*time.Second {
					t.Errorf("the next request: %d, %v after %v; want it sent after 20 s", status, err, time.Since(begin))
				}
			})
		})
	}
}

// A caller who waits longer than the pause gets the answer after it. One who does not reads until when it lasts, and nothing is sent.
func TestAPauseOfAnyLengthIsKept(t *testing.T) {
	t.Parallel()
	const login = "http://keystone/v3/auth/tokens"
	for _, test := range []struct {
		asked, held   string // method, or login
		pause, waited time.Duration
	}{
		{asked: "GET", held: "GET", pause: 20 * time.Second},
		{asked: "GET", held: "POST", pause: 2 * time.Minute}, // a gateway counts both together
		{asked: "POST", held: "GET", pause: 10 * time.Minute},
		{asked: "POST", held: "POST", pause: 50 * time.Minute},
		{asked: "GET", held: "POST", pause: 48 * time.Hour, waited: longestPause},
		{asked: login, held: login, pause: 2 * time.Minute},
		{asked: login, held: "GET", pause: 2 * time.Minute, waited: -1}, // Keystone counts by itself
		{asked: "GET", held: login, pause: 2 * time.Minute, waited: -1},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := answering(answer{status: 429, retryAfter: strconv.Itoa(int(test.pause.Seconds()))}, answer{status: 200})
				rt := NewBudget(100, 100, &meter{}).Limit(f)
				request := func(ctx context.Context, kind string) error {
					if kind == login {
						return outcomeOf(sendTo(ctx, t, rt, "POST", login))
					}
					return outcomeOf(send(ctx, t, rt, kind))
				}
				if err := request(t.Context(), test.asked); err != nil {
					t.Fatal(err)
				}
				want := cmp.Or(test.waited, test.pause)
				if want > 0 {
					short, cancel := context.WithTimeout(t.Context(), want-time.Second)
					defer cancel()
					if err := request(short, test.held); !errors.As(err, new(ThrottledError)) || !strings.Contains(err.Error(), "Retry-After") || len(f.at) != 1 {
						t.Errorf("a caller who does not wait so long: %v, %d requests", err, len(f.at))
					}
				}
				begin := time.Now()
				if err := request(t.Context(), test.held); err != nil || time.Since(begin) != max(0, want) {
					t.Errorf("sent after %v, want %v; %v", time.Since(begin), want, err)
				}
			})
		})
	}
}

func outcomeOf(_ int, err error) error { return err }

func TestLoginsAreNotLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := NewBudget(1, 1, &meter{}).Limit(answering(answer{status: 503}))
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

// A cloud moves its services when it likes. The requests of the login before go on.
func TestAllLoginsOfACloudShareTheSlotsOfLargeReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(0, 0, noMeter{})
		read := func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cinder/v3/volumes", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := b.Limit(large{}).RoundTrip(request) // another login each time
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
		for range 2 {
			if err := read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third large reply: %v", err)
		}
	})
}

// large is a cloud with a reply that takes a slot.
type large struct{}

func (large) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat(" ", 128<<10)))}, nil
}
