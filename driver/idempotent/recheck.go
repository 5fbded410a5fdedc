package idempotent

import (
	"context"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// clockSkew is how far the clocks of Cinder's hosts may differ, and how long a database server may lag. A list of what was created since a time
// contains a duplicate all the same.
const clockSkew = time.Minute

// Recheck is NamedWith for an object that this call created after it had searched for the name at a time. Any other object of the name appeared
// after that search. So calls that recheck at the same time share one list of everything that was created since the first of their searches.
// A call searches for its name alone if that list has not exactly its object, or if its name needs a wait. So does every call if the list fails.
// A search asks whose each object is, and the list does not.
func (r *Resource[T]) Recheck(ctx context.Context, name string, object T, searched time.Time) ([]T, error) {
	own := r.Candidate(object)
	if r.ListCreated == nil || own.CreatedAt.IsZero() {
		return r.NamedWith(ctx, name, own.ID)
	}
	// The clock of Cinder says when the object was created, and that of the driver how long before that the search was at most.
	created, complete := r.created.list(ctx, own.CreatedAt.Add(-time.Since(searched)-clockSkew), r.patience(), r.listCreated)
	var found []T // and no memory of the others, which a wait would keep
	for _, other := range created {
		if r.Candidate(other).Name == name {
			found = append(found, other)
		}
	}
	if !complete || len(found) != 1 || r.Candidate(found[0]).ID != own.ID || r.Candidate(found[0]).BeingDeleted {
		return r.NamedWith(ctx, name, own.ID)
	}
	r.holdOffs.endAccepted(r.Noun + " " + name)
	return found, nil
}

// listCreated is ListCreated for a goroutine of its own. A panic is a list that failed.
func (r *Resource[T]) listCreated(ctx context.Context, since time.Time) (found []T, more bool, err error) {
	err = panics.Try(func() (err error) { found, more, err = r.ListCreated(ctx, since); return err })
	panics.Log(r.Log, "the list of what Cinder has created", err)
	return found, more, err
}

// createdLists share lists of what was created since a time. One is in flight; the calls that come meanwhile share the next.
type createdLists[T any] struct {
	mu      sync.Mutex // never held during a call
	next    *createdList[T]
	running bool
}

type createdList[T any] struct {
	since    time.Time
	wait     time.Duration
	done     chan struct{}
	found    []T
	complete bool // it has everything since then
}

// The limits of one list, which serves many callers and ends with none of them.
const (
	leastPatience = 1500 * time.Millisecond
	mostPatience  = 10 * time.Second
)

// collectTime is how long the first of some lists waits for more callers. One answer of Cinder ends the waits of many creates within a moment.
// Without this the first of them has a list of its own, and all others wait for the next.
const collectTime = 5 * time.Millisecond

// patience is how long a list may take: some times as long as the last search for a name took. A cloud that is slow as a whole must not get more
// requests. A list that is slower fails, so that it costs its callers little.
func (r *Resource[T]) patience() time.Duration {
	return min(max(leastPatience, 4*time.Duration(r.searchTook.Load())), mostPatience)
}

// list returns what was created since a time, as a list shows it that began after the call did. It is not complete if the list failed or has
// more than one page, if the one before it failed, or if ctx ended first.
func (l *createdLists[T]) list(ctx context.Context, since time.Time, wait time.Duration, read func(ctx context.Context, since time.Time) ([]T, bool, error)) ([]T, bool) {
	defer volume.BeginStep(ctx, "waiting for the list of what Cinder has created")()
	l.mu.Lock()
	if l.next == nil {
		l.next = &createdList[T]{since: since, wait: wait, done: make(chan struct{})}
	}
	mine := l.next
	if since.Before(mine.since) {
		mine.since = since
	}
	if !l.running {
		l.running = true
		go l.run(read)
	}
	l.mu.Unlock()
	select {
	case <-mine.done:
		return mine.found, mine.complete
	case <-ctx.Done():
		return nil, false
	}
}

// run reads lists until nobody wants one.
func (l *createdLists[T]) run(read func(ctx context.Context, since time.Time) ([]T, bool, error)) {
	time.Sleep(collectTime)
	for {
		l.mu.Lock()
		now := l.next
		l.next, l.running = nil, now != nil
		l.mu.Unlock()
		if now == nil {
			return
		}
		ctx, cancel := context.WithTimeout(volume.WithOneAttempt(context.Background()), now.wait)
		found, more, err := read(ctx, now.since)
		cancel()
		now.found, now.complete = found, err == nil && !more
		close(now.done)
		if err != nil {
			l.giveUp()
			return
		}
	}
}

// giveUp lets those that wait for the next list search alone: after a list that failed, it would cost them as much again.
func (l *createdLists[T]) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		close(l.next.done)
	}
	l.next, l.running = nil, false
}
