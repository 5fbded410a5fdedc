package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// questions may never be answered: a disk or a file system that is dead holds whoever asks it in the kernel. Each is asked once, for
// all who want to know at the same time, so that it costs one goroutine and one thread, however often somebody comes.
type questions[K comparable, A any] struct {
	open sync.Map // K -> *question[A], until it is answered
}

// question is one that was asked.
type question[A any] struct {
	asked    time.Time
	answered chan struct{} // closed when the answer is below
	answer   A
	late     atomic.Bool // somebody went without the answer
	told     sync.Once   // and said so
}

// put asks, unless somebody already waits for the answer; fresh when it did.
func (q *questions[K, A]) put(key K, ask func() A) (asked *question[A], fresh bool) {
	asked = &question[A]{asked: time.Now(), answered: make(chan struct{})}
	if earlier, already := q.open.LoadOrStore(key, asked); already {
		return earlier.(*question[A]), false
	}
	go func() {
		defer close(asked.answered)
		defer q.open.Delete(key)
		asked.answer = ask()
	}()
	return asked, true
}

// silent gives since when a question has been waiting for its answer; false when it is not, or only for as long as anybody would wait.
func (q *questions[K, A]) silent(key K) (since time.Time, ok bool) {
	asked, ok := q.open.Load(key)
	if !ok || !asked.(*question[A]).late.Load() {
		return time.Time{}, false
	}
	return asked.(*question[A]).asked, true
}

// await reports whether the answer came before ctx ended, and before patience after the question had passed. The clock runs from the
// question, so that who comes later to one that is stuck does not wait again.
func (q *question[A]) await(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(time.Until(q.asked.Add(patience)))
	defer timer.Stop()
	select {
	case <-q.answered:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select {
	case <-q.answered: // at the same moment
		return true
	default:
		q.late.Store(true)
		return false
	}
}
