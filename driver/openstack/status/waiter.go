package status

import (
	"context"
	"time"
)

// The poll interval: a waiter gets its next result after a share of the time that it has waited, within bounds. A long wait ends
// little later than the change it waits for, and does not poll all the time.
//
// test/suite/bench chose minInterval. With 75 ms the life of a single volume takes 86.6 calls, and with 150 ms 56.9. With eight volumes it takes
// 28.2 and 24.8 calls each. The median operation takes 10 to 30 ms longer. A small cloud creates a volume in 300 ms.
const (
	minInterval   = 150 * time.Millisecond
	maxInterval   = 5 * time.Second
	intervalShare = 0.08
	leaveTime     = 10 * time.Millisecond // at least, between a result and the next call: a satisfied waiter leaves first
)

func interval(age time.Duration) time.Duration {
	return min(maxInterval, max(minInterval, time.Duration(float64(age)*intervalShare)))
}

// waiter is one Await or Read. Only the loop uses the fields after results.
type waiter[ID ~string, T any] struct {
	ctx     context.Context
	id      ID
	once    bool           // any result ends it
	results chan result[T] // holds only the newest

	number  uint64 // in the order of joining; a call that began earlier does not serve this waiter
	began   time.Time
	due     time.Time // when it wants its next result
	omitted bool      // the last listing did not contain its object: only a read tells why
	listed  bool      // the listing in flight serves it
	changed time.Time // a listing of what changed since then contains its object; zero: only a listing of everything does
}

// deliver replaces the result that the waiter has not taken yet. Only the loop sends, so the send cannot block.
func (w *waiter[ID, T]) deliver(r result[T]) {
	select {
	case <-w.results:
	default:
	}
	w.results <- r
}

// ids lists the objects of the waiters, each once.
func ids[ID ~string, T any](waiters []*waiter[ID, T]) []ID {
	var ids []ID
	seen := map[ID]bool{}
	for _, w := range waiters {
		if !seen[w.id] {
			seen[w.id] = true
			ids = append(ids, w.id)
		}
	}
	return ids
}
