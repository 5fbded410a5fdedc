package status

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Run polls until ctx ends, and then ends every wait. A panic ends the waits that there are, and is the error. The caller then calls Run again.
func (h *hub[ID, T]) Run(ctx context.Context) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop() // calls end with it
	l := loop[ID, T]{
		kind: h.kind, meter: h.meter, reading: map[ID]bool{}, answers: make(chan answer[ID, T]), pageBegan: &atomic.Int64{},
	}
	l.start = func(listing bool, wanted map[ID]bool, call func() answer[ID, T]) {
		began, joined := time.Now(), l.joined
		calls.Go(func() {
			var a answer[ID, T]
			if err := panics.Try(func() error { a = call(); return nil }); err != nil {
				a = answer[ID, T]{listing: listing, failed: true, results: map[ID]result[T]{}}
				for id := range wanted {
					a.results[id] = result[T]{err: l.defect(id, err)}
				}
			}
			a.began, a.joined = began, joined
			select {
			case l.answers <- a:
			case <-running.Done():
			}
		})
	}
	err := panics.Try(func() error { return h.serve(running, &l) })
	if errors.As(err, new(*panics.Error)) {
		for _, w := range l.waiters {
			w.deliver(result[T]{err: l.defect(w.id, err)})
		}
	}
	if ctx.Err() != nil {
		h.close()
	}
	return err
}

// defect ends a wait: a retry may succeed, and what it waited for may have been written.
func (l *loop[ID, T]) defect(id ID, err error) error {
	return volume.Errorf(volume.Unknown, "%s %s: the driver cannot poll it: %w", l.kind.noun, id, err).Op("wait").AfterWrite()
}

// serve polls for the waiters until ctx ends.
func (h *hub[ID, T]) serve(ctx context.Context, l *loop[ID, T]) error {
	for {
		l.dropLeft()
		timer := l.poll(ctx)
		select {
		case w := <-h.join:
			l.add(w)
		case a := <-l.answers:
			l.handle(a)
		case <-h.left:
		case <-timer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loop is the state of Run. Nothing else uses it.
type loop[ID ~string, T any] struct {
	kind    kind[ID, T]
	meter   Meter
	start   func(listing bool, wanted map[ID]bool, call func() answer[ID, T])
	answers chan answer[ID, T]

	waiters []*waiter[ID, T]
	joined  uint64
	newest  time.Time   // the newest change that any answer has shown, by the clock of the cloud
	reading map[ID]bool // objects with a read in flight

	cancelListing func()        // nil while no listing is in flight
	listingBegan  time.Time     // the last one
	listingTook   time.Duration // the last one that has ended
	listingServes uint64        // the number of waiters that had joined then
	listingFailed time.Time     // when; zero after a success
	listingSlow   bool          // the one in flight, so its waiters read alone
	pageBegan     *atomic.Int64
	readTook      time.Duration // the longest read of one object since the listing began; zero without one
}

func (l *loop[ID, T]) add(w *waiter[ID, T]) {
	l.joined++
	w.number, w.began = l.joined, time.Now()
	if w.once {
		w.due = w.began
	} else { // the caller has just requested a change, which takes a while
		w.due, w.changed = w.began.Add(minInterval), l.newest
	}
	l.waiters = append(l.waiters, w)
}

// dropLeft removes the waiters that have left. If the listing in flight serves no other, it ends.
func (l *loop[ID, T]) dropLeft() {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.ctx.Err() != nil })
	if l.cancelListing != nil && !slices.ContainsFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.number <= l.listingServes }) {
		l.cancelListing()
	}
	var oldest time.Time
	if len(l.waiters) > 0 {
		oldest = l.waiters[0].began
	}
	l.meter.Waiting(len(l.waiters), oldest)
}

// handle delivers an answer to the waiters that had joined before the call began, and decides when their next results are due.
func (l *loop[ID, T]) handle(a answer[ID, T]) {
	now := time.Now()
	if a.listing {
		l.cancelListing, l.listingTook = nil, now.Sub(a.began)
		if !l.listingSlow { // a slow one counts as failed
			l.listingFailed = time.Time{}
		}
		if a.failed {
			l.listingFailed = now
		}
	} else {
		l.readTook = max(l.readTook, now.Sub(a.began), 1)
	}
	for id, r := range a.results {
		if !a.listing {
			delete(l.reading, id)
		}
		if r.err == nil { // a host with a fast clock must not hide the changes of others, and later changes are not in this answer
			l.newest = later(l.newest, earlier(l.kind.stateOf(r.object).changed, a.began))
		}
	}
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter[ID, T]) bool { return l.serve(w, a, now) && w.once })
}

// serve gives a waiter its result of an answer, and decides when its next is due. It reports whether there was one.
func (l *loop[ID, T]) serve(w *waiter[ID, T], a answer[ID, T], now time.Time) bool {
	covered := a.listing && w.listed && !a.failed
	w.listed = w.listed && !a.listing
	r, has := a.results[w.id]
	if !has || w.number > a.joined {
		if covered {
			w.omitted, w.due = true, now
		}
		return false
	}
	w.deliver(r)
	w.omitted = false
	if r.err == nil {
		w.changed = l.kind.stateOf(r.object).changed
	}
	every := interval(now.Sub(w.began))
	if !l.listingFailed.IsZero() { // every object costs a read of its own
		every = min(maxInterval, 2*every)
	}
	// After a slow answer the hub leaves the cloud alone for as long as the answer took. After a slow listing the waiters read alone.
	rest := now.Sub(a.began)
	if a.listing && l.listingSlow {
		rest = 0
	}
	w.due = later(now.Add(max(leaveTime, rest)), a.began.Add(every))
	return true
}
