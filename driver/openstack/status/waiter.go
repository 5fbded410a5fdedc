package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// How long after the wait's begin, and after each reading, a waiter is due again: a share of how long it has waited, so that
// what takes long is not told much later than it happens, and is not asked for all the time either.
const (
	eagerly = 75 * time.Millisecond // a small cloud makes a volume in 300 ms and attaches it in 400 ms
	share   = 0.08
	lazily  = 5 * time.Second
	breath  = 10 * time.Millisecond // for whoever is content to leave before the next call begins
)

// stale is how old a waiter's last reading may be before the object itself is read: listings of what changed rest on the clocks
// of the cloud's hosts, which may differ.
const stale = 10 * time.Second

// waiter is one Await or Read. All but the first five fields are the loop's.
type waiter[ID ~string, T any] struct {
	ctx      context.Context
	id       ID
	first    time.Duration   // after which it wants its first reading
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

// pause is how long a waiter waits for its next reading after it has waited for age.
func pause(age time.Duration) time.Duration {
	return min(lazily, max(eagerly, time.Duration(float64(age)*share)))
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
