package status

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// How often the cloud is asked. A small cloud makes a volume in 0.3 s and attaches in 0.4 to 1 s, a busy one takes minutes: each
// waiter begins eagerly and slows down.
const (
	firstInterval = 200 * time.Millisecond
	lastInterval  = 2 * time.Second
	growth        = 1.5
	listInterval  = time.Second           // between two listings of everything
	together      = 50 * time.Millisecond // waiters due this close are served by one round
)

// Up to this many volumes are read one by one; more are cheaper by listing the project. A project of many pages makes listing
// dearer, so the bound grows with the pages the last listing had.
const (
	readSingly = 4
	parallel   = 8
	pageLimit  = 1000 // Cinder's default osapi_max_limit
)

// waiter is one Await.
type waiter[ID ~string, T any] struct {
	ctx      context.Context
	id       ID
	readings chan reading[T] // holds the newest reading only
	interval time.Duration
	due      time.Time
}

// tell replaces whatever the waiter has not looked at yet. Only the loop sends, so the send cannot block.
func (w *waiter[ID, T]) tell(r reading[T]) {
	select {
	case <-w.readings:
	default:
	}
	w.readings <- r
}

// Run polls until ctx ends, and then lets every waiter go. It is called once.
func (h *hub[ID, T]) Run(ctx context.Context) error {
	defer close(h.closed)
	l := loop[ID, T]{kind: h.kind, pages: 1}
	for {
		l.forget()
		var tick <-chan time.Time // nil, and so never, while nobody waits
		if due, any := l.next(); any {
			tick = time.After(time.Until(due))
		}
		select {
		case w := <-h.join:
			l.add(w)
		case <-tick:
			l.forget()
			l.round(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loop is the state of Run; nothing else touches it.
type loop[ID ~string, T any] struct {
	kind    kind[ID, T]
	waiters []*waiter[ID, T]
	listed  time.Time // when the last listing began
	pages   int       // that it had
}

func (l *loop[ID, T]) add(w *waiter[ID, T]) {
	w.interval, w.due = firstInterval, time.Now()
	l.waiters = append(l.waiters, w)
}

// forget drops the waiters that have left.
func (l *loop[ID, T]) forget() {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter[ID, T]) bool { return w.ctx.Err() != nil })
}

// next is when the earliest waiter is due.
func (l *loop[ID, T]) next() (time.Time, bool) {
	if len(l.waiters) == 0 {
		return time.Time{}, false
	}
	due := l.waiters[0].due
	for _, w := range l.waiters[1:] {
		if w.due.Before(due) {
			due = w.due
		}
	}
	if earliest := l.listed.Add(listInterval); l.lists() && due.Before(earliest) {
		due = earliest
	}
	return due, true
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

// lists reports whether so many objects are waited for that listing them all is cheaper.
func (l *loop[ID, T]) lists() bool {
	return l.kind.list != nil && len(ids(l.waiters)) > readSingly*l.pages
}

// round reads what is due and tells it to all who wait for it: they all joined before the reading began.
func (l *loop[ID, T]) round(ctx context.Context) {
	if len(l.waiters) == 0 {
		return
	}
	soon := time.Now().Add(together)
	served := l.waiters
	if !l.lists() {
		served = slices.DeleteFunc(slices.Clone(l.waiters), func(w *waiter[ID, T]) bool { return w.due.After(soon) })
	}
	readings := map[ID]reading[T]{}
	wanted := ids(served)
	if l.lists() {
		wanted = l.list(ctx, wanted, readings)
	}
	l.read(ctx, wanted, readings)
	now := time.Now()
	for _, w := range l.waiters {
		if r, ok := readings[w.id]; ok {
			w.tell(r)
			w.due = now.Add(w.interval)
			w.interval = min(lastInterval, time.Duration(float64(w.interval)*growth))
		}
	}
}

// list reads pages until every wanted object was seen or the list ends, and gives back those that were not: a list that changes
// while it is walked may pass an object over, so absence is not proof. A refusal is everybody's answer.
func (l *loop[ID, T]) list(ctx context.Context, wanted []ID, readings map[ID]reading[T]) (missing []ID) {
	l.listed, l.pages = time.Now(), 0
	open := map[ID]bool{}
	for _, id := range wanted {
		open[id] = true
	}
	var last ID
	for len(open) > 0 {
		page, err := l.kind.list(ctx, last, pageLimit)
		l.pages++
		if err != nil && !volume.Is(err, volume.NotFound) {
			for id := range open {
				readings[id] = reading[T]{err: err}
			}
			return nil
		}
		for _, object := range page {
			id, _ := l.kind.look(object)
			if last = id; open[id] {
				readings[id] = reading[T]{object: object, ok: true}
				delete(open, id)
			}
		}
		if len(page) == 0 || len(open) <= readSingly {
			break
		}
	}
	for id := range open {
		missing = append(missing, id)
	}
	return missing
}

// read reads objects one by one, some at a time.
func (l *loop[ID, T]) read(ctx context.Context, wanted []ID, readings map[ID]reading[T]) {
	answers := make([]reading[T], len(wanted))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, id := range wanted {
		group.Go(func() error {
			object, err := l.kind.read(ctx, id)
			switch {
			case err == nil:
				answers[i] = reading[T]{object: object, ok: true}
			case !volume.Is(err, volume.NotFound):
				answers[i] = reading[T]{err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // no goroutine gives an error
	for i, id := range wanted {
		readings[id] = answers[i]
	}
}
