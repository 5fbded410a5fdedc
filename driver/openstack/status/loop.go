package status

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Run polls until ctx ends, and then ends every wait. The caller calls it once.
func (h *hub[ID, T]) Run(ctx context.Context) error {
	var calls sync.WaitGroup
	defer calls.Wait() // they end with ctx
	defer close(h.closed)
	l := loop[ID, T]{
		hub: h, kind: h.kind, pages: 1, reading: map[ID]bool{}, answers: make(chan answer[ID, T]),
		start: func(call func() answer[ID, T], answers chan<- answer[ID, T]) {
			calls.Go(func() {
				a := call()
				select {
				case answers <- a:
				case <-ctx.Done():
				}
			})
		},
	}
	for {
		l.dropLeft()
		l.cancelUnusedListing()
		timer := l.startDueCalls(ctx)
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
	hub     *hub[ID, T]
	kind    kind[ID, T]
	start   func(call func() answer[ID, T], answers chan<- answer[ID, T])
	answers chan answer[ID, T]

	waiters []*waiter[ID, T]
	joined  uint64
	reading map[ID]bool // objects with a single read in flight

	listing       bool   // in flight
	listingServes uint64 // the number of the last waiter that had joined when it began
	listingCovers uint64 // the same if it lists everything, otherwise 0
	cancelListing func()
	listingBegan  time.Time     // the last one
	listingStatus volume.Status // its filter; listings of changes and of deletions take turns
	pages         int           // of the last listing of everything
	newestListed  time.Time     // when the last listing began that contained every change
	newestChange  time.Time     // listings have shown all changes before this time; see advance
}

// answer is the outcome of one single read, or of one walk over a list.
type answer[ID ~string, T any] struct {
	number      uint64 // of the last waiter that had joined when the call began
	began       time.Time
	results     map[ID]result[T]
	single      bool
	query       query[ID]
	pages       int
	unsupported bool // the cloud does not have this filter
	complete    bool // the walk read every page, or saw every wanted object
}

func (l *loop[ID, T]) add(w *waiter[ID, T]) {
	l.joined++
	w.number, w.began = l.joined, time.Now()
	w.due, w.next = w.began, readOrList
	if !w.once {
		w.due, w.next = w.began.Add(minInterval), changesListing // the caller has just requested the change, which takes a while
	}
	l.waiters = append(l.waiters, w)
}

// dropLeft removes the waiters that have left.
func (l *loop[ID, T]) dropLeft() {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.ctx.Err() != nil })
	if len(l.waiters) == 0 {
		l.hub.meter.Waiting(0, time.Time{})
		return
	}
	l.hub.meter.Waiting(len(l.waiters), l.waiters[0].began)
}

// cancelUnusedListing ends the listing in flight if every waiter that it serves has left.
func (l *loop[ID, T]) cancelUnusedListing() {
	if l.listing && !slices.ContainsFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.number <= l.listingServes }) {
		l.cancelListing()
	}
}

// handle delivers an answer to the waiters that had joined before the call began.
func (l *loop[ID, T]) handle(a answer[ID, T]) {
	now := time.Now()
	if !a.single {
		l.listing = false
		if a.unsupported {
			l.kind.filters, l.listingBegan = false, time.Time{}
			return
		}
		if a.query.everything() && a.pages > 0 {
			l.pages = a.pages
		}
		if a.complete && a.query.status == "" {
			l.newestListed = a.began
		}
	}
	for id, r := range a.results {
		if a.single {
			delete(l.reading, id)
		}
		if r.exists {
			l.advance(l.kind.stateOf(r.object).changed, a.began)
		}
	}
	for _, w := range l.waiters {
		if w.number <= a.number {
			l.serve(w, a, now)
		}
	}
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.once && !w.delivered.IsZero() })
}

// serve passes an answer to one waiter, and decides when its next result is due.
func (l *loop[ID, T]) serve(w *waiter[ID, T], a answer[ID, T], now time.Time) {
	r, has := a.results[w.id]
	switch {
	case has:
		w.found(r, l.kind.stateOf(r.object).status, now)
	case a.single:
		return
	case w.missing(a.query):
		w.due = now
		return
	}
	// After a slow answer the hub leaves the cloud alone for as long as the answer took.
	w.due = later(now.Add(max(leaveTime, now.Sub(a.began))), a.began.Add(interval(now.Sub(w.began))))
}

// advance moves newestChange up to the time of a change, but not beyond the begin of the last listing. That listing does not contain later
// changes. Otherwise a host with a fast clock would hide the changes of all other hosts until their clocks catch up. If the driver's own
// clock is slow, it only lists more than it needs.
func (l *loop[ID, T]) advance(change, began time.Time) {
	limit := l.newestListed
	if limit.IsZero() { // before the first listing, waiters without a result get a single read
		limit = began
	}
	if change.After(limit) {
		change = limit
	}
	l.newestChange = later(l.newestChange, change)
}
