package transport

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const (
	burstTime        = 20 * time.Second // so much of the rate may be used at once: a thousand claims at the same time are normal
	recoveryInterval = 5 * time.Second
	unlimitedAfter   = 10 * time.Minute // without a complaint, where no limit is configured
	minRate          = 1                // request a second
	complaintWindow  = time.Second      // complaints of one window are one: every request in flight gets one
)

// limiter limits one kind of request, and adapts to the cloud. A complaint of the cloud (429, 498, 503) halves the rate. Every
// recoveryInterval without one raises it by a tenth, up to the configured limit. Retry-After pauses all requests of the kind.
type limiter struct {
	kind  string
	meter BudgetMeter
	limit rate.Limit // as configured

	mu            sync.Mutex // protects what follows; never held during a wait
	tokens        *rate.Limiter
	pausedUntil   time.Time
	lastComplaint time.Time
	lastChange    time.Time // of the rate
	second        time.Time // when the second began in which sent counts
	sent          int
	sentBefore    int // in the second before that
}

func newLimiter(kind string, perSecond float64, m BudgetMeter) *limiter {
	limit := rate.Limit(perSecond)
	if perSecond <= 0 {
		limit = rate.Inf
	}
	l := &limiter{kind: kind, meter: m, limit: limit, tokens: rate.NewLimiter(limit, burstOf(limit))}
	m.Limited(kind, perSecondOf(limit))
	return l
}

// burstOf is how many requests the limiter sends at once at the configured rate.
func burstOf(l rate.Limit) int {
	if l == rate.Inf {
		return 0
	}
	return max(1, int(float64(l)*burstTime.Seconds()))
}

func perSecondOf(l rate.Limit) float64 {
	if l == rate.Inf {
		return math.Inf(1)
	}
	return float64(l)
}

// wait returns when the request may be sent. A zero deadline is none.
func (l *limiter) wait(ctx context.Context, deadline time.Time) error {
	reserved, wait := l.reserve(time.Now())
	if wait <= 0 {
		return nil
	}
	if !deadline.IsZero() && time.Until(deadline) <= wait {
		reserved.Cancel()
		return ThrottledError{l.kind, wait}
	}
	l.meter.Waited(l.kind, wait)
	defer volume.BeginStep(ctx, "waiting for the limit of "+l.kind+" requests a second to the cloud")()
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		reserved.Cancel()
		return notSentError{ctx.Err()}
	}
}

// reserve takes the next turn, and returns how long it is until then.
func (l *limiter) reserve(now time.Time) (*rate.Reservation, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recover(now)
	if now.Sub(l.second) >= time.Second {
		l.sentBefore, l.sent = l.sent, 0
		if now.Sub(l.second) >= 2*time.Second {
			l.sentBefore = 0
		}
		l.second = now
	}
	l.sent++
	r := l.tokens.ReserveN(now, 1)
	return r, max(r.DelayFrom(now), l.pausedUntil.Sub(now))
}

// recover raises a reduced rate. The caller holds l.mu.
func (l *limiter) recover(now time.Time) {
	for l.tokens.Limit() < l.limit && now.Sub(l.lastChange) >= recoveryInterval {
		l.lastChange = l.lastChange.Add(recoveryInterval)
		raised := l.tokens.Limit() * 1.1
		if l.limit == rate.Inf && now.Sub(l.lastComplaint) > unlimitedAfter {
			raised = rate.Inf
		}
		l.set(now, min(raised, l.limit))
	}
}

// set changes the rate. A reduced rate allows a burst of one second. The caller holds l.mu.
func (l *limiter) set(now time.Time, r rate.Limit) {
	burst := burstOf(l.limit)
	if r < l.limit {
		burst = max(1, int(r))
	}
	l.tokens.SetLimitAt(now, r)
	l.tokens.SetBurstAt(now, burst)
	l.meter.Limited(l.kind, perSecondOf(r))
}

// complained halves the rate: the one that was really sent, where that is below the limit.
func (l *limiter) complained(status int, h http.Header) {
	l.meter.Complained(l.kind, status)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if pause, ok := retryAfter(h, now); ok && pause <= maxRetryAfter && now.Add(pause).After(l.pausedUntil) {
		l.pausedUntil = now.Add(pause)
	}
	if now.Sub(l.lastComplaint) < complaintWindow {
		return
	}
	l.lastComplaint, l.lastChange = now, now
	l.set(now, max(minRate, min(l.tokens.Limit(), rate.Limit(max(l.sent, l.sentBefore)))/2))
}
