package transport

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const (
	burstTime        = 20 * time.Second // so much of the rate may be used at once: a thousand claims at the same time are normal
	recoveryInterval = 5 * time.Second
	recoveryShare    = 0.05        // of the limit, by which the rate rises after each recoveryInterval
	unlimitedRate    = 100         // requests a second, which count as the limit after a complaint if none is configured
	minRate          = 1           // request a second
	longestPause     = time.Hour   // after which the driver asks again, whatever Retry-After said
	complaintWindow  = time.Second // complaints of one window are one: every request in flight gets one
)

// limiter limits one kind of request, and adapts to the cloud. If the cloud asks for fewer requests, that halves the rate. A reduced rate has no
// bursts, and rises step by step to the configured limit. Retry-After pauses the reads and the writes: most gateways count both together.
//
// The requests wait in a queue. Only the first knows when it is sent, so all others follow a rate that changes.
type limiter struct {
	kind  string
	meter BudgetMeter
	limit float64       // requests a second, as configured; +Inf for none
	full  float64       // the limit, or unlimitedRate
	first chan struct{} // held by the first request of the queue

	mu        sync.Mutex // protects what follows; never held during a wait
	rate      float64    // at present
	free      time.Time  // when the next request may be sent; how long ago that was is what a burst may use
	queued    int
	paused    time.Time // until then, as the cloud has asked
	complaint time.Time // the last one that changed the rate
	changed   time.Time // the rate
}

func newLimiter(kind string, perSecond float64, m BudgetMeter) *limiter {
	l := &limiter{kind: kind, meter: m, limit: perSecond, full: perSecond, first: make(chan struct{}, 1)}
	if perSecond <= 0 {
		l.limit, l.full = math.Inf(1), unlimitedRate
	}
	l.set(time.Time{}, l.limit)
	return l
}

// wait returns when the request may be sent. A zero deadline is none.
func (l *limiter) wait(ctx context.Context, deadline time.Time) error {
	begin := time.Now()
	expected := l.enter(begin)
	defer l.leave()
	if err := l.beyond(deadline, expected); err != nil {
		return err
	}
	if expected > 0 {
		defer func() { l.meter.Waited(l.kind, time.Since(begin)) }()
		what := "waiting for the limit of " + l.kind + " requests a second to the cloud"
		if until := l.pausedUntil(); until.After(begin) {
			what = "waiting until " + until.UTC().Format("15:04:05 MST") + ", as the cloud asks (Retry-After)"
		}
		defer volume.BeginStep(ctx, what)()
	}
	select {
	case l.first <- struct{}{}:
		defer func() { <-l.first }()
	case <-ctx.Done():
		return notSentError{ctx.Err()}
	}
	for wait := l.take(time.Now()); wait > 0; wait = l.take(time.Now()) {
		if err := l.beyond(deadline, wait); err != nil {
			return err
		}
		if err := volume.Sleep(ctx, wait); err != nil {
			return notSentError{err}
		}
	}
	return nil
}

// beyond is the error of a wait that ends after the deadline.
func (l *limiter) beyond(deadline time.Time, wait time.Duration) error {
	if wait > 0 && !deadline.IsZero() && time.Until(deadline) <= wait {
		return ThrottledError{l.kind, wait, l.pausedUntil()}
	}
	return nil
}

func (l *limiter) pausedUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}

func (l *limiter) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = later(l.paused, until)
	l.free = later(l.free, until)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// enter adds a request to the queue, and estimates its wait by the present rate.
func (l *limiter) enter(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recover(now)
	ahead := time.Duration(l.queued) * l.step()
	l.queued++
	return l.next(now).Add(ahead).Sub(now)
}

func (l *limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued--
}

// take returns how long the first request must still wait. If that is nothing, the request counts as sent.
func (l *limiter) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recover(now)
	next := l.next(now)
	if next.After(now) {
		return next.Sub(now)
	}
	l.free = next.Add(l.step())
	return 0
}

// next is when the next request may be sent: the more of a burst is left, the longer ago. The caller holds l.mu.
func (l *limiter) next(now time.Time) time.Time {
	burst := l.step()
	if l.rate == l.limit {
		burst = max(burst, burstTime)
	}
	if earliest := now.Add(l.step() - burst); l.free.Before(earliest) {
		return earliest
	}
	return l.free
}

// step is the time between two requests at the present rate. The caller holds l.mu.
func (l *limiter) step() time.Duration {
	return time.Duration(float64(time.Second) / l.rate)
}

// recover raises a reduced rate. The caller holds l.mu.
func (l *limiter) recover(now time.Time) {
	for l.rate < l.limit && now.Sub(l.changed) >= recoveryInterval {
		rate := l.rate + l.full*recoveryShare
		if rate >= l.full {
			rate = l.limit
		}
		l.set(l.changed.Add(recoveryInterval), rate)
	}
}

// set changes the rate. The caller holds l.mu.
func (l *limiter) set(at time.Time, rate float64) {
	l.rate, l.changed = rate, at
	l.meter.Limited(l.kind, rate)
}

// complained reduces the rate after an answer that asks for fewer requests.
func (l *limiter) complained(status int) {
	l.meter.Complained(l.kind, status)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.complaint) < complaintWindow {
		return
	}
	l.complaint = now
	l.set(later(now, l.free), max(min(minRate, l.full), min(l.rate, l.full)/2)) // the recovery begins after the pause
}
