package status

import (
	"context"
	"errors"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// kind is what a hub knows about the objects that it polls.
type kind[ID ~string, T any] struct {
	noun    string
	read    func(ctx context.Context, id ID) (T, error)
	list    func(ctx context.Context, q query[ID]) (page []T, more bool, err error) // nil for objects that are read one by one
	filters bool                                                                    // list filters by the query's status and since
	stateOf func(T) state[ID]
}

// query selects one page of a list: the objects after one. With filters it selects those with a status, or those that changed since a time.
type query[ID ~string] struct {
	after  ID
	status volume.Status
	since  time.Time
}

func (q query[ID]) everything() bool { return q.status == "" && q.since.IsZero() }

// state is the part of an object that the hub uses.
type state[ID ~string] struct {
	id      ID // empty if the object does not contain it
	status  volume.Status
	changed time.Time // by the clock of the cloud
}

// result is what one answer of the cloud says about one object.
type result[T any] struct {
	object T
	exists bool
	absent bool  // the cloud says that it does not exist
	err    error // why neither is known; with absent, the cloud's answer
}

// resultOf reads one object.
func (k kind[ID, T]) resultOf(ctx context.Context, id ID) result[T] {
	object, err := k.read(ctx, id)
	return result[T]{object: object, exists: err == nil, absent: volume.Is(err, volume.NotFound), err: err}
}

// walk reads pages until it has seen every wanted object or the list ends. A list that changes during the walk may omit an object, so
// absence proves nothing. If the cloud refuses, its error is the result for every wanted object.
func (k kind[ID, T]) walk(ctx context.Context, q query[ID], wanted map[ID]bool, m Meter) answer[ID, T] {
	a := answer[ID, T]{query: q, results: map[ID]result[T]{}}
	err := paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		m.Called(q.name())
		a.pages++
		page := q
		page.after = ID(marker)
		return k.list(ctx, page)
	}, func(object T) string { return string(k.stateOf(object).id) }, func(page []T) bool {
		for _, object := range page {
			if id := k.stateOf(object).id; wanted[id] {
				a.results[id] = result[T]{object: object, exists: true}
			}
		}
		return len(a.results) < len(wanted)
	})
	switch {
	case err == nil:
		a.complete = true
		return a
	case volume.Is(err, volume.NotFound): // somebody deleted the object of the marker
		return a
	case volume.Is(err, volume.Unimplemented) && !q.everything():
		return answer[ID, T]{query: q, unsupported: true}
	case errors.Is(err, paging.ErrEndless):
		err = volume.Errorf(volume.Unavailable, "cannot list the %ss: %w", k.noun, err).Op("list")
	}
	for id := range wanted {
		if _, seen := a.results[id]; !seen {
			a.results[id] = result[T]{err: err}
		}
	}
	return a
}

// name is the query's name in metrics.
func (q query[ID]) name() string {
	switch {
	case q.everything():
		return "list"
	case q.status != "":
		return "deleting"
	}
	return "changes"
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
