// Package status answers the question every controller RPC ends with: has it happened yet?
//
// One loop polls the cloud for all waiters. A waiter gets answers that were read after it began to wait, or its context's error;
// never a guess. Nothing is polled while nobody waits, and nothing here changes anything in the cloud.
package status

import (
	"context"
	"errors"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Poller is what the hub reads the cloud through.
type Poller interface {
	// Volume reads one volume; NotFound when there is none.
	Volume(ctx context.Context, id volume.ID) (volume.Volume, error)
	// Volumes reads one page of the project's volumes. NotFound when the marker's volume is gone.
	Volumes(ctx context.Context, page volume.Page) ([]volume.Volume, error)
}

// SnapshotPoller is what the hub of snapshots reads the cloud through.
type SnapshotPoller interface {
	// Snapshot reads one snapshot; NotFound when there is none.
	Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
	// Snapshots reads one page of the project's snapshots. NotFound when the marker's snapshot is gone.
	Snapshots(ctx context.Context, page volume.SnapshotPage) ([]volume.Snapshot, error)
}

// Hub answers any number of waiters for volumes, SnapshotHub for snapshots. They work while Run does.
type (
	Hub         = hub[volume.ID, volume.Volume]
	SnapshotHub = hub[volume.SnapshotID, volume.Snapshot]
)

var (
	_ volume.Waiter         = (*Hub)(nil)
	_ volume.SnapshotWaiter = (*SnapshotHub)(nil)
)

// NewHub makes a hub of volumes; Run brings it to life.
func NewHub(p Poller) *Hub {
	return newHub(kind[volume.ID, volume.Volume]{
		noun: "volume", read: p.Volume,
		list: func(ctx context.Context, after volume.ID, limit int) ([]volume.Volume, error) {
			return p.Volumes(ctx, volume.Page{Marker: after, Limit: limit})
		},
		look: func(v volume.Volume) (volume.ID, volume.Status) { return v.ID, v.Status },
	})
}

// NewSnapshotHub makes a hub of snapshots; Run brings it to life.
func NewSnapshotHub(p SnapshotPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{
		noun: "snapshot", read: p.Snapshot,
		list: func(ctx context.Context, after volume.SnapshotID, limit int) ([]volume.Snapshot, error) {
			return p.Snapshots(ctx, volume.SnapshotPage{Marker: after, Limit: limit})
		},
		look: func(v volume.Snapshot) (volume.SnapshotID, volume.Status) { return v.ID, v.Status },
	})
}

// BackupPoller is what the hub of backups reads the cloud through.
type BackupPoller interface {
	// Backup reads one backup; NotFound when there is none.
	Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
}

// NewBackupHub makes a hub of backups, which are read one by one; Run brings it to life.
func NewBackupHub(p BackupPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{
		noun: "backup", read: p.Backup, look: func(b volume.Snapshot) (volume.SnapshotID, volume.Status) { return b.ID, b.Status },
	})
}

// kind is what a hub must know of the objects it watches.
type kind[ID ~string, T any] struct {
	noun string
	read func(ctx context.Context, id ID) (T, error)
	list func(ctx context.Context, after ID, limit int) ([]T, error) // nil where none is worth it
	look func(T) (ID, volume.Status)
}

type hub[ID ~string, T any] struct {
	kind   kind[ID, T]
	join   chan *waiter[ID, T]
	closed chan struct{}
}

func newHub[ID ~string, T any](k kind[ID, T]) *hub[ID, T] {
	return &hub[ID, T]{kind: k, join: make(chan *waiter[ID, T]), closed: make(chan struct{})}
}

// reading is one answer of the cloud about one object.
type reading[T any] struct {
	object T
	ok     bool  // the object exists
	err    error // neither is known
}

// Await implements volume.Waiter and volume.SnapshotWaiter. A cloud that cannot be reached is asked again until ctx ends; a cloud that refuses to tell ends
// the wait with its error. After Run has ended the answer is Unavailable.
func (h *hub[ID, T]) Await(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error) {
	var none T
	ctx, leave := context.WithCancel(ctx)
	defer leave() // the loop drops waiters whose context has ended
	w := &waiter[ID, T]{ctx: ctx, id: id, readings: make(chan reading[T], 1)}
	var last *reading[T] // nil until there is one
	select {
	case h.join <- w:
	case <-h.closed:
		return none, h.stopping(id)
	case <-ctx.Done():
		return none, h.interrupted(ctx, id, last)
	}
	for {
		select {
		case r := <-w.readings:
			last = &r
			if transient(last.err) {
				continue
			}
			if last.err != nil {
				return none, last.err
			}
			if finished, err := done(last.object, last.ok); finished || err != nil {
				return last.object, err
			}
		case <-h.closed:
			return none, h.stopping(id)
		case <-ctx.Done():
			return none, h.interrupted(ctx, id, last)
		}
	}
}

// transient reports that a poll failed in a way that the next one may not. A poll's own deadline is such a way; the waiter's is
// seen by the waiter.
func transient(err error) bool {
	switch volume.KindOf(err) {
	case volume.Unavailable, volume.Busy, volume.DeadlineExceeded, volume.Canceled:
		return err != nil
	}
	return false
}

func (h *hub[ID, T]) stopping(id ID) error {
	return volume.Errorf(volume.Unavailable, "%s %s: the driver is stopping; a retry resumes the wait", h.kind.noun, id).Op("wait")
}

// interrupted is the error of a waiter whose context ended, with what was last seen.
func (h *hub[ID, T]) interrupted(ctx context.Context, id ID, last *reading[T]) error {
	kind := volume.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = volume.DeadlineExceeded
	}
	var seen string
	switch {
	case last == nil:
		seen = "it has not been read yet"
	case last.err != nil:
		seen = "the last try to read it failed: " + last.err.Error()
	case last.ok:
		_, status := h.kind.look(last.object)
		seen = "it is " + string(status)
	default:
		seen = "it does not exist"
	}
	return volume.Errorf(kind, "%s %s: %s; a retry resumes the wait: %w", h.kind.noun, id, seen, ctx.Err()).Op("wait")
}
