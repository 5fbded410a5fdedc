package status

import (
	"context"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// kind is what a hub knows about the objects that it polls.
type kind[ID ~string, T any] struct {
	noun string
	read func(ctx context.Context, id ID) (T, error)
	// list reads the page after an object. It may omit objects that have not changed since a time; zero omits none. Nil means that the hub
	// reads each object by itself.
	list    func(ctx context.Context, after ID, since time.Time) (page []T, more bool, err error)
	stateOf func(T) state[ID]
}

// state is the part of an object that the hub uses.
type state[ID ~string] struct {
	id      ID // empty if the object does not contain it
	status  volume.Status
	changed time.Time // by the clock of the cloud; zero if unknown
}

// result is what one answer of the cloud says about one object. NotFound means that it does not exist.
type result[T any] struct {
	object T
	err    error
}

func (r result[T]) absent() bool { return volume.Is(r.err, volume.NotFound) }

// answer is the outcome of one read, or of one listing.
type answer[ID ~string, T any] struct {
	joined  uint64 // the number of waiters that had joined when the call began
	began   time.Time
	results map[ID]result[T]
	listing bool
	failed  bool // the listing
}

// listAll lists the wanted objects. It stops after a page for every maxReads of them: then reads cost no more. A list that changes during
// the walk may omit an object, and so may the driver, so absence proves nothing.
func (k kind[ID, T]) listAll(ctx context.Context, since time.Time, wanted map[ID]bool, called func()) answer[ID, T] {
	a := answer[ID, T]{results: map[ID]result[T]{}, listing: true}
	pages := 0
	err := paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		called()
		pages++
		page, more, err := k.list(ctx, ID(marker), since)
		return page, more && pages*maxReads < len(wanted), err
	}, func(object T) string { return string(k.stateOf(object).id) }, func(page []T) bool {
		for _, object := range page {
			if id := k.stateOf(object).id; wanted[id] {
				a.results[id] = result[T]{object: object}
			}
		}
		return len(a.results) < len(wanted)
	})
	markerGone := pages > 1 && volume.Is(err, volume.NotFound)
	a.failed = err != nil && !markerGone && ctx.Err() == nil
	return a
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }
