package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Measured on Cinder 21: a read of one volume takes 30 ms; a listing takes 30 ms and 0.45 ms for each row. So if the cloud lists changes, a
// listing pays from two objects on. Otherwise it pays above maxReads, and for objects that no listing of changes contains above
// maxExtraReads. In a project with many pages a listing costs more, so both bounds grow with its pages.
const (
	maxReads         = 4
	maxExtraReads    = 16
	maxParallelReads = 64
	pageLimit        = 1000                   // Cinder's default osapi_max_limit
	minListInterval  = 100 * time.Millisecond // between the begins of two listings, of which only one is in flight
	collectTime      = 30 * time.Millisecond  // a listing of everything waits so long for more waiters
)

// maxSkew is the assumed difference between the clocks of the cloud's hosts, which set the times of changes, and the driver's. These
// times are whole seconds. The hub finds a change with an older time once the result of its waiter is stale.
const maxSkew = time.Second

// startDueCalls starts the calls that are due. The returned channel fires when the next may be; it is nil while nobody waits.
func (l *loop[ID, T]) startDueCalls(ctx context.Context) <-chan time.Time {
	now := time.Now()
	var next time.Time
	wake := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	var due []*waiter[ID, T]
	for _, w := range l.waiters {
		if w.due.After(now) {
			wake(w.due)
		} else {
			due = append(due, w)
		}
	}
	if len(due) > 0 {
		if at := l.poll(ctx, due, now); !at.IsZero() {
			wake(at)
		}
	}
	if next.IsZero() {
		return nil
	}
	return time.After(time.Until(next))
}

// poll starts the calls for the waiters that are due, and returns when a delayed listing may begin. An answer in flight serves the waiters
// whose object it reads; if too many calls are in flight, the rest wait for one to end.
func (l *loop[ID, T]) poll(ctx context.Context, due []*waiter[ID, T], now time.Time) time.Time {
	if l.kind.list == nil || len(ids(l.waiters)) <= l.maxReads() {
		l.startReads(ctx, ids(due))
		return time.Time{}
	}
	by := map[source][]*waiter[ID, T]{}
	for _, w := range due {
		from := w.source(now)
		if from >= changesListing && !l.listsChanges() {
			from = readOrList
		}
		by[from] = append(by[from], w)
	}
	single := ids(by[singleRead])
	by[readOrList] = slices.DeleteFunc(by[readOrList], func(w *waiter[ID, T]) bool { return l.listing && w.number <= l.listingCovers })
	everything := !l.listsChanges() && len(by[readOrList]) > 0
	if few := ids(by[readOrList]); !everything && (l.listing || len(few) <= maxExtraReads*l.pages) {
		single = append(single, few...)
	} else {
		everything = true
	}
	l.startReads(ctx, single)
	var oldest time.Time // of those that need a listing of everything
	for _, w := range by[readOrList] {
		if oldest.IsZero() || w.due.Before(oldest) {
			oldest = w.due
		}
	}
	return l.startListing(ctx, everything, len(by[changesListing]) > 0, len(by[deletingListing]) > 0, oldest, now)
}

// maxReads is up to how many objects the hub reads one by one. A listing of changes costs little more than one read.
func (l *loop[ID, T]) maxReads() int {
	if l.listsChanges() {
		return 1
	}
	return maxReads * l.pages
}

// listsChanges reports whether the hub can list only what changed.
func (l *loop[ID, T]) listsChanges() bool { return l.kind.filters && !l.newestChange.IsZero() }

// startListing starts the listing that serves most waiters, or returns when it may begin.
func (l *loop[ID, T]) startListing(ctx context.Context, everything, changes, deletions bool, oldest, now time.Time) time.Time {
	if l.listing || !everything && !changes && !deletions {
		return time.Time{}
	}
	ready := l.listingBegan.Add(minListInterval)
	if everything {
		ready = later(ready, oldest.Add(collectTime))
	}
	if ready.After(now) {
		return ready
	}
	var q query[ID]
	switch {
	case everything:
	case deletions && (!changes || l.listingStatus == ""):
		q.status = volume.Deleting
	default:
		q.since = l.newestChange.Add(-maxSkew)
	}
	ctx, cancel := context.WithCancel(ctx)
	l.listing, l.listingBegan, l.listingStatus = true, now, q.status
	l.listingServes, l.listingCovers, l.cancelListing = l.joined, 0, cancel
	if everything {
		l.listingCovers = l.joined
	}
	wanted := map[ID]bool{}
	for _, w := range l.waiters {
		wanted[w.id] = true
	}
	k, number, meter := l.kind, l.joined, l.hub.meter
	l.start(func() answer[ID, T] {
		defer cancel()
		a := k.walk(ctx, q, wanted, meter)
		a.number, a.began = number, now
		return a
	}, l.answers)
	return time.Time{}
}

// startReads starts single reads of the objects that have none in flight, up to maxParallelReads.
func (l *loop[ID, T]) startReads(ctx context.Context, wanted []ID) {
	now := time.Now()
	for _, id := range wanted {
		if l.reading[id] || len(l.reading) >= maxParallelReads {
			continue
		}
		l.reading[id] = true
		k, number, meter := l.kind, l.joined, l.hub.meter
		l.start(func() answer[ID, T] {
			meter.Called("single")
			return answer[ID, T]{number: number, began: now, single: true, results: map[ID]result[T]{id: k.resultOf(ctx, id)}}
		}, l.answers)
	}
}
