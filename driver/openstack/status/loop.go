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
type waiter struct {
	ctx      context.Context
	id       volume.ID
	readings chan reading // holds the newest reading only
	interval time.Duration
	due      time.Time
}

// tell replaces whatever the waiter has not looked at yet. Only the loop sends, so the send cannot block.
func (w *waiter) tell(r reading) {
	select {
	case <-w.readings:
	default:
	}
	w.readings <- r
}

// Run polls until ctx ends, and then lets every waiter go. It is called once.
func (h *Hub) Run(ctx context.Context) error {
	defer close(h.closed)
	l := loop{poller: h.poller, pages: 1}
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
type loop struct {
	poller  Poller
	waiters []*waiter
	listed  time.Time // when the last listing began
	pages   int       // that it had
}

func (l *loop) add(w *waiter) {
	w.interval, w.due = firstInterval, time.Now()
	l.waiters = append(l.waiters, w)
}

// forget drops the waiters that have left.
func (l *loop) forget() {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool { return w.ctx.Err() != nil })
}

// next is when the earliest waiter is due.
func (l *loop) next() (time.Time, bool) {
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

// ids lists the volumes that some of the waiters wait for.
func ids(waiters []*waiter) []volume.ID {
	var ids []volume.ID
	for _, w := range waiters {
		ids = append(ids, w.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// lists reports whether so many volumes are waited for that listing them all is cheaper.
func (l *loop) lists() bool { return len(ids(l.waiters)) > readSingly*l.pages }

// round reads what is due and tells it to all who wait for it: they all joined before the reading began.
func (l *loop) round(ctx context.Context) {
	if len(l.waiters) == 0 {
		return
	}
	soon := time.Now().Add(together)
	served := l.waiters
	if !l.lists() {
		served = slices.DeleteFunc(slices.Clone(l.waiters), func(w *waiter) bool { return w.due.After(soon) })
	}
	readings := map[volume.ID]reading{}
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

// list reads pages until every wanted volume was seen or the list ends, and gives back those that were not: a list that changes
// while it is walked may pass a volume over, so absence is not proof. A refusal is everybody's answer.
func (l *loop) list(ctx context.Context, wanted []volume.ID, readings map[volume.ID]reading) (missing []volume.ID) {
	l.listed, l.pages = time.Now(), 0
	open := map[volume.ID]bool{}
	for _, id := range wanted {
		open[id] = true
	}
	page := volume.Page{Limit: pageLimit}
	for len(open) > 0 {
		volumes, err := l.poller.Volumes(ctx, page)
		l.pages++
		if err != nil && !volume.Is(err, volume.NotFound) {
			for id := range open {
				readings[id] = reading{err: err}
			}
			return nil
		}
		for _, v := range volumes {
			if open[v.ID] {
				readings[v.ID] = reading{volume: v, ok: true}
				delete(open, v.ID)
			}
		}
		if len(volumes) == 0 || len(open) <= readSingly {
			break
		}
		page.Marker = volumes[len(volumes)-1].ID
	}
	for id := range open {
		missing = append(missing, id)
	}
	return missing
}

// read reads volumes one by one, some at a time.
func (l *loop) read(ctx context.Context, wanted []volume.ID, readings map[volume.ID]reading) {
	answers := make([]reading, len(wanted))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, id := range wanted {
		group.Go(func() error {
			v, err := l.poller.Volume(ctx, id)
			switch {
			case err == nil:
				answers[i] = reading{volume: v, ok: true}
			case !volume.Is(err, volume.NotFound):
				answers[i] = reading{err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // no goroutine gives an error
	for i, id := range wanted {
		readings[id] = answers[i]
	}
}
