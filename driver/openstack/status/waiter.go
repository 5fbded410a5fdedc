package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The poll interval: a waiter gets its next reading after a share of the time that it has waited, within bounds. A long wait ends
// little later than the change it waits for, and does not poll all the time.
//
// test/bench chose minInterval. 75 ms costs 86.6 calls a life of one volume alone and 28.2 of each of eight; 150 ms costs 56.9
// and 24.8, and adds 10 to 30 ms to the median operation. A small cloud creates a volume in 300 ms and attaches it in 400 ms.
const (
	minInterval   = 150 * time.Millisecond
	maxInterval   = 5 * time.Second
	intervalShare = 0.08
	leaveTime     = 10 * time.Millisecond // at least, between a reading and the next call: a satisfied waiter leaves first
)

// stale is how old a waiter's last reading may be before the object itself is read: listings of what changed rest on the clocks
// of the cloud's hosts, which may differ.
const stale = 10 * time.Second

// waiter is one Await or Read. All but the first four fields are the loop's.
type waiter[ID ~string, T any] struct {
	ctx      context.Context
	id       ID
	once     bool            // any reading ends it
	readings chan reading[T] // holds the newest reading only

	number uint64 // of its join; calls that began before do not serve it
	began  time.Time
	due    time.Time
	told   time.Time // when it was last told anything; zero if never
	next   way       // to get its next reading when many wait
}

// tell replaces whatever the waiter has not looked at yet. Only the loop sends, so the send cannot block.
func (w *waiter[ID, T]) tell(r reading[T]) {
	select {
	case <-w.readings:
	default:
	}
	w.readings <- r
}

// interval is the poll interval of a waiter that has waited for age.
func interval(age time.Duration) time.Duration {
	return min(maxInterval, max(minInterval, time.Duration(float64(age)*intervalShare)))
}

// The ways in which the loop finds out about an object.
type way int

const (
	alone    way = iota // by reading it
	anyhow              // by reading it or in a listing of everything
	changed             // in a listing of what changed
	deleting            // in a listing of what is being deleted
)

// way is how the waiter's next reading is got when many wait.
func (w *waiter[ID, T]) way(now time.Time) way {
	if w.next >= changed && !w.told.IsZero() && now.Sub(w.told) >= stale {
		return anyhow
	}
	return w.next
}

// show passes on what a call showed of the waiter's object.
func (w *waiter[ID, T]) show(r reading[T], status volume.Status, now time.Time) {
	w.told, w.next = now, changed
	if status == volume.Deleting {
		w.next = deleting
	}
	w.tell(r)
}

// miss notes that a listing did not show the waiter's object, and reports whether that means anything. One that a listing of
// everything or of those being deleted does not show is gone or was passed over: only reading it tells. One that no listing of
// changes ever showed had settled before.
func (w *waiter[ID, T]) miss(q query[ID]) bool {
	switch {
	case q.since.IsZero() && (q.status == "" || w.next == deleting):
		w.next = alone
	case !q.since.IsZero() && w.told.IsZero():
		w.next = anyhow
	default:
		return false
	}
	return true
}

// ids lists the objects that some of the waiters wait for.
func ids[ID ~string, T any](waiters []*waiter[ID, T]) []ID {
	var ids []ID
	for _, w := range waiters {
		ids = append(ids, w.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
