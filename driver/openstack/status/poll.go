package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Measured on Cinder 21: a read of one volume takes 30 ms; a listing takes 30 ms and 0.45 ms for each volume in it. test/suite/bench chose
// fewObjects: the life of each of 50 volumes took 17.9 calls with 1, 22.9 with 4, and 27.5 with 16.
const (
	fewObjects       = 1  // up to so many the hub reads one by one, however often
	maxReads         = 16 // that a listing of everything must save
	maxParallelReads = 64
	minListInterval  = 100 * time.Millisecond // between the begins of two listings, of which only one is in flight
	listInterval     = 5                      // times as long as the last listing took, up to maxListInterval: on a busy cloud some call has always just begun
	maxListInterval  = 500 * time.Millisecond
	collectTime      = 30 * time.Millisecond // a listing of everything waits so long for more waiters
	relistAfter      = time.Minute           // after a listing that failed or was slow
)

// A page of a listing is slow if it takes longer than listPatience, and longer than the reads that it replaces. These count as at least listReads,
// and at most as those at the same time. Then reads of single objects are the faster way. A listing that fails costs its waiters one round, and one that is slow must not
// cost more. A cloud that is slow as a whole must not get more requests: after listPatience one read shows how long a read takes now.
const (
	listPatience = 2 * time.Second
	listReads    = 16
)

// The clocks of the cloud's hosts set the times of changes, in whole seconds, and are assumed to differ by maxSkew. If one is slower, the
// listings omit its objects, and the hub reads them. An object that has not changed for maxAge would make the listings of all others long,
// so the hub reads that too.
const (
	maxSkew = time.Second
	maxAge  = 10 * time.Minute
)

// poll starts the calls that are due. The returned channel fires when the next may be; it is nil while nobody waits.
//
// Up to fewObjects are read one by one. For more there is one listing, and a read of each that it does not contain. After a listing that
// failed or is slow every object is read by itself; each relistAfter another listing runs beside the reads, until one succeeds.
func (l *loop[ID, T]) poll(ctx context.Context) <-chan time.Time {
	now := time.Now()
	l.judgeListing(ctx, now)
	due, next := l.due(now)
	alone := due
	if l.kind.list != nil && len(ids(l.waiters)) > fewObjects {
		var listed []*waiter[ID, T]
		var everything bool
		if alone, listed, everything = l.split(due, now); len(listed) > 0 {
			if at := l.startListing(ctx, listed[0].due, everything, now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		if !l.listingFailed.IsZero() {
			alone = due
		}
	}
	l.startReads(ctx, ids(alone))
	if slow := l.listingSlowAt(); !slow.IsZero() && (next.IsZero() || slow.Before(next)) {
		next = slow
	}
	if next.IsZero() {
		return nil
	}
	return time.After(time.Until(next))
}

// listingSlowAt is when the listing in flight may count as slow. It is zero without one, where it does already, and while the first read is in
// flight.
func (l *loop[ID, T]) listingSlowAt() time.Time {
	if l.cancelListing == nil || l.listingSlow || l.readTook == 0 && len(l.reading) > 0 {
		return time.Time{}
	}
	return time.Unix(0, l.pageBegan.Load()).Add(max(listPatience, time.Duration(replacedReads(len(l.waiters)))*l.readTook))
}

// replacedReads is how many reads a listing is worth.
func replacedReads(waiters int) int { return min(max(listReads, waiters), maxParallelReads) }

// judgeListing lets the waiters of a slow listing read alone. The listing goes on.
func (l *loop[ID, T]) judgeListing(ctx context.Context, now time.Time) {
	slow := l.listingSlowAt()
	if slow.IsZero() || slow.After(now) {
		return
	}
	if i := slices.IndexFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.listed }); l.readTook == 0 && i >= 0 {
		l.startReads(ctx, []ID{l.waiters[i].id})
		return
	}
	l.listingSlow, l.listingFailed = true, now
	for _, w := range l.waiters {
		if w.listed {
			w.listed, w.due = false, now
		}
	}
}

// due are the waiters that want a result now, the first due first, and when the next wants one. It omits those that a listing in flight serves.
func (l *loop[ID, T]) due(now time.Time) (due []*waiter[ID, T], next time.Time) {
	for _, w := range l.waiters {
		switch {
		case w.listed:
		case !w.due.After(now):
			due = append(due, w)
		case next.IsZero() || w.due.Before(next):
			next = w.due
		}
	}
	slices.SortStableFunc(due, func(a, b *waiter[ID, T]) int { return a.due.Compare(b.due) })
	return due, next
}

// unlisted reports whether a listing of recent changes probably omits the object of a waiter.
func (l *loop[ID, T]) unlisted(w *waiter[ID, T], now time.Time) bool {
	return w.once || !w.changed.IsZero() && now.Sub(w.changed) > maxAge
}

// split divides the waiters into those that need a read of their object, and those that a listing serves. That is a listing of everything if
// the reads would be too many.
func (l *loop[ID, T]) split(due []*waiter[ID, T], now time.Time) (alone, listed []*waiter[ID, T], everything bool) {
	var unlisted []*waiter[ID, T]
	for _, w := range due {
		switch {
		case w.omitted:
			alone = append(alone, w)
		case l.unlisted(w, now):
			unlisted = append(unlisted, w)
		default:
			listed = append(listed, w)
		}
	}
	if len(ids(unlisted))+len(l.reading) > maxReads {
		return alone, append(unlisted, listed...), true
	}
	return append(alone, unlisted...), listed, false
}

// startListing starts a listing of the objects of all waiters, except of those that need a read. The first waiter wanted it at a time. It
// returns when the listing may begin, if that is later; zero while another is in flight.
func (l *loop[ID, T]) startListing(ctx context.Context, first time.Time, everything bool, now time.Time) time.Time {
	if l.cancelListing != nil {
		return time.Time{}
	}
	covered := slices.DeleteFunc(slices.Clone(l.waiters), func(w *waiter[ID, T]) bool { return w.omitted || !everything && l.unlisted(w, now) })
	var since time.Time
	if !everything {
		since = slices.MinFunc(covered, func(a, b *waiter[ID, T]) int { return a.changed.Compare(b.changed) }).changed
	}
	ready, how := l.listingBegan.Add(max(minListInterval, min(listInterval*l.listingTook, maxListInterval))), "list"
	if everything {
		ready = later(ready, first.Add(collectTime))
	}
	if !since.IsZero() {
		since, how = since.Add(-maxSkew), "changes"
	}
	if !l.listingFailed.IsZero() {
		ready = later(ready, l.listingFailed.Add(relistAfter))
	}
	if ready.After(now) {
		return ready
	}
	wanted := map[ID]bool{}
	for _, w := range covered {
		wanted[w.id], w.listed = true, l.listingFailed.IsZero()
	}
	ctx, cancel := context.WithCancel(volume.WithOneAttempt(ctx)) // if it fails, reads are faster than another attempt
	l.cancelListing, l.listingBegan, l.listingServes, l.listingSlow, l.readTook = cancel, now, l.joined, false, 0
	l.pageBegan.Store(now.UnixNano())
	k, called := l.kind, func() {
		l.pageBegan.Store(time.Now().UnixNano())
		l.meter.Called(how)
	}
	l.start(true, wanted, func() answer[ID, T] {
		defer cancel()
		return k.listAll(ctx, since, wanted, called)
	})
	return time.Time{}
}

// startReads starts reads of the objects that have none in flight, up to maxParallelReads.
func (l *loop[ID, T]) startReads(ctx context.Context, wanted []ID) {
	for _, id := range wanted {
		if l.reading[id] || len(l.reading) >= maxParallelReads {
			continue
		}
		l.reading[id] = true
		k, meter := l.kind, l.meter
		l.start(false, map[ID]bool{id: true}, func() answer[ID, T] {
			meter.Called("single")
			object, err := k.read(ctx, id)
			return answer[ID, T]{results: map[ID]result[T]{id: {object, err}}}
		})
	}
}
