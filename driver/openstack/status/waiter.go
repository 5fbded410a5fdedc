package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The poll interval: a waiter gets its next result after a share of the time that it has waited, within bounds. A long wait ends
// little later than the change it waits for, and does not poll all the time.
//
// test/bench chose minInterval. With 75 ms the life of a single volume takes 86.6 calls, and with 150 ms 56.9. With eight volumes it takes
// 28.2 and 24.8 calls each. The median operation takes 10 to 30 ms longer. A small cloud creates a volume in 300 ms.
const (
	minInterval   = 150 * time.Millisecond
	maxInterval   = 5 * time.Second
	intervalShare = 0.08
	leaveTime     = 10 * time.Millisecond // at least, between a result and the next call: a satisfied waiter leaves first
)

// interval is the poll interval of a waiter that has waited for age.
func interval(age time.Duration) time.Duration {
	return min(maxInterval, max(minInterval, time.Duration(float64(age)*intervalShare)))
}

// staleAfter is the age of a waiter's latest result after which the hub reads the object itself. Listings of changes depend on the clocks of
// the cloud's hosts, which may differ.
const staleAfter = 10 * time.Second

// waiter is one Await or Read. Only the loop uses the fields after results.
type waiter[ID ~string, T any] struct {
	ctx     context.Context
	id      ID
	once    bool           // any result ends it
	results chan result[T] // holds only the newest

	number    uint64 // in the order of joining; a call that began earlier does not serve this waiter
	began     time.Time
	due       time.Time // when it wants its next result
	delivered time.Time // when it got the latest; zero before the first
	next      source    // of its next result when many wait
}

// deliver replaces the result that the waiter has not taken yet. Only the loop sends, so the send cannot block.
func (w *waiter[ID, T]) deliver(r result[T]) {
	select {
	case <-w.results:
	default:
	}
	w.results <- r
}

// source is the kind of request that gives a waiter its next result.
type source int

const (
	singleRead      source = iota // a read of the object
	readOrList                    // a read of the object, or a listing of everything
	changesListing                // a listing of what changed
	deletingListing               // a listing of what is being deleted
)

// source is where the waiter's next result comes from when many wait.
func (w *waiter[ID, T]) source(now time.Time) source {
	if w.next >= changesListing && !w.delivered.IsZero() && now.Sub(w.delivered) >= staleAfter {
		return readOrList
	}
	return w.next
}

// found delivers a result with the waiter's object.
func (w *waiter[ID, T]) found(r result[T], status volume.Status, now time.Time) {
	w.delivered, w.next = now, changesListing
	if status == volume.Deleting {
		w.next = deletingListing
	}
	w.deliver(r)
}

// missing notes that a listing did not contain the waiter's object. It reports whether another source must tell why. An object missing in
// a listing of everything, or of what is being deleted, is gone or was omitted: only a read tells. An object that no listing of changes
// ever contained had changed before.
func (w *waiter[ID, T]) missing(q query[ID]) bool {
	switch {
	case q.since.IsZero() && (q.status == "" || w.next == deletingListing):
		w.next = singleRead
	case !q.since.IsZero() && w.delivered.IsZero():
		w.next = readOrList
	default:
		return false
	}
	return true
}

// ids lists the objects of the waiters, each once.
func ids[ID ~string, T any](waiters []*waiter[ID, T]) []ID {
	var ids []ID
	for _, w := range waiters {
		ids = append(ids, w.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
