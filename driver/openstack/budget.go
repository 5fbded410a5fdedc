package openstack

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Budget keeps the requests to one cloud within a rate, reads and writes apart, so that polling never starves an attach. The rate
// halves when the cloud complains (429, 498, 503) and recovers by a tenth every recovery without a complaint; where the cloud says
// how long it wants to be left alone, all requests of the kind wait so long. A request that would have to wait beyond its
// context's deadline fails at once and was not sent. Logins are not counted.
type Budget struct{ reads, writes *bucket }

// BudgetMeter is told what a Budget does. Its methods must not block.
type BudgetMeter interface {
	// Limited says how many requests a second of a kind ("read" or "write") may be sent on average from now on; +Inf is any number.
	Limited(kind string, perSecond float64)
	// Waited says that a request was held back.
	Waited(kind string, d time.Duration)
	// Complained says that the cloud asked for fewer requests, by which HTTP status.
	Complained(kind string, status int)
}

const (
	burst    = 20 * time.Second // of the rate may be spent at once: a thousand claims at the same time are normal, for hours are not
	recovery = 5 * time.Second
	lowest   = 1           // request a second
	storm    = time.Second // complaints so close are one: all of what was under way gets them
)

// NewBudget gives a budget of so many requests a second on average; 0 is no limit as long as the cloud does not complain.
func NewBudget(reads, writes float64, m BudgetMeter) *Budget {
	return &Budget{reads: newBucket("read", reads, m), writes: newBucket("write", writes, m)}
}

// Spend gives next with its requests held back as the budget demands.
func (b *Budget) Spend(next http.RoundTripper) http.RoundTripper { return spender{b, next} }

type spender struct {
	budget *Budget
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s spender) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/auth/tokens") {
		return s.next.RoundTrip(req)
	}
	b := s.budget.writes
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		b = s.budget.reads
	}
	if err := b.wait(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := s.next.RoundTrip(req)
	if err == nil && complaint(resp.StatusCode) {
		b.complained(resp)
	}
	return resp, err
}

// complaint reports whether a status asks for fewer requests. 498 is Swift's and some proxies' 429.
func complaint(status int) bool {
	return status == http.StatusTooManyRequests || status == statusRateLimited || status == http.StatusServiceUnavailable
}

const statusRateLimited = 498

// errThrottled is the error of a request that was not sent because its turn would have come too late.
type errThrottled struct {
	kind string
	wait time.Duration
}

func (e errThrottled) Error() string {
	return fmt.Sprintf("not sent: the driver may send the cloud another %s only in %s, after the caller's deadline; the cloud complains, or --openstack-%ss-per-second is low",
		e.kind, e.wait.Round(time.Millisecond), e.kind)
}

// bucket is the budget of one kind of request.
type bucket struct {
	kind    string
	meter   BudgetMeter
	ceiling rate.Limit

	mu      sync.Mutex // held for a look, never over a wait
	tokens  *rate.Limiter
	until   time.Time // the cloud wants to be left alone
	blamed  time.Time // when it last complained
	changed time.Time // when the rate last changed
	second  time.Time // in which sent are counted
	sent    int
	before  int // in the second before
}

func newBucket(kind string, perSecond float64, m BudgetMeter) *bucket {
	ceiling := rate.Limit(perSecond)
	if perSecond <= 0 {
		ceiling = rate.Inf
	}
	b := &bucket{kind: kind, meter: m, ceiling: ceiling, tokens: rate.NewLimiter(ceiling, burstOf(ceiling))}
	m.Limited(kind, finite(ceiling))
	return b
}

// burstOf is how many requests may be sent at once at a rate that nobody complained about.
func burstOf(l rate.Limit) int {
	if l == rate.Inf {
		return 0
	}
	return max(1, int(float64(l)*burst.Seconds()))
}

func finite(l rate.Limit) float64 {
	if l == rate.Inf {
		return math.Inf(1)
	}
	return float64(l)
}

// wait takes a token and waits for its time.
func (b *bucket) wait(req *http.Request) error {
	ctx := req.Context()
	reserved, wait := b.take()
	if wait <= 0 {
		return nil
	}
	if deadline, bounded := volume.StartBy(ctx); bounded && time.Until(deadline) <= wait {
		reserved.Cancel()
		return errThrottled{b.kind, wait}
	}
	b.meter.Waited(b.kind, wait)
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		reserved.Cancel()
		return errNotSent{ctx.Err()}
	}
}

func (b *bucket) take() (*rate.Reservation, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.recover(now)
	if now.Sub(b.second) >= time.Second {
		b.before, b.sent = b.sent, 0
		if now.Sub(b.second) >= 2*time.Second {
			b.before = 0
		}
		b.second = now
	}
	b.sent++
	r := b.tokens.ReserveN(now, 1)
	return r, max(r.DelayFrom(now), b.until.Sub(now))
}

// recover raises a rate that was lowered. It needs b.mu.
func (b *bucket) recover(now time.Time) {
	for b.tokens.Limit() < b.ceiling && now.Sub(b.changed) >= recovery {
		b.changed = b.changed.Add(recovery)
		limit := b.tokens.Limit() * 1.1
		if b.ceiling == rate.Inf && now.Sub(b.blamed) > 10*time.Minute {
			limit = rate.Inf
		}
		b.set(now, min(limit, b.ceiling))
	}
}

// set changes the rate. One below the ceiling has a burst of a second's worth. It needs b.mu.
func (b *bucket) set(now time.Time, l rate.Limit) {
	size := burstOf(b.ceiling)
	if l < b.ceiling {
		size = max(1, int(l))
	}
	b.tokens.SetLimitAt(now, l)
	b.tokens.SetBurstAt(now, size)
	b.meter.Limited(b.kind, finite(l))
}

// complained halves the rate: of what was really sent, where that is less than what was allowed.
func (b *bucket) complained(resp *http.Response) {
	b.meter.Complained(b.kind, resp.StatusCode)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if asked, ok := retryAfter(resp.Header, now); ok && asked <= longestAsk && now.Add(asked).After(b.until) {
		b.until = now.Add(asked)
	}
	if now.Sub(b.blamed) < storm {
		return
	}
	b.blamed, b.changed = now, now
	b.set(now, max(lowest, min(b.tokens.Limit(), rate.Limit(max(b.sent, b.before)))/2))
}
