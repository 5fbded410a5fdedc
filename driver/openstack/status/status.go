// Package status answers the question every controller RPC ends with: has it happened yet?
//
// One loop polls the cloud for all waiters. A waiter gets answers that were read after it began to wait, or its context's error;
// never a guess. Nothing is polled while nobody waits, and nothing here changes anything in the cloud.
package status

import (
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Poller is what the hub reads the cloud through.
type Poller interface {
	// Volume reads one volume; NotFound when there is none.
	Volume(ctx context.Context, id volume.ID) (volume.Volume, error)
	// Select reads one page of the project's volumes that fit, and whether there are more. NotFound when the marker's volume is
	// gone, Unimplemented where the cloud cannot choose them so.
	Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error)
}

// SnapshotPoller is what the hub of snapshots reads the cloud through.
type SnapshotPoller interface {
	// Snapshot reads one snapshot; NotFound when there is none.
	Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
	// Snapshots reads one page of the project's snapshots. NotFound when the marker's snapshot is gone.
	Snapshots(ctx context.Context, page volume.SnapshotPage) ([]volume.Snapshot, error)
}

// BackupPoller is what the hub of backups reads the cloud through.
type BackupPoller interface {
	// Backup reads one backup; NotFound when there is none.
	Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
}

// ServerPoller is what the hub of servers reads the cloud through.
type ServerPoller interface {
	// ServerAttachments reads the volumes Nova has for a server; NotFound when there is no such server.
	ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error)
}

// Hub answers any number of waiters for volumes, SnapshotHub for snapshots and backups, ServerHub for what is attached to
// servers. They work while Run does.
type (
	Hub         = hub[volume.ID, volume.Volume]
	SnapshotHub = hub[volume.SnapshotID, volume.Snapshot]
	ServerHub   = hub[volume.ServerID, []volume.Attachment]
)

var (
	_ volume.Waiter         = (*Hub)(nil)
	_ volume.SnapshotWaiter = (*SnapshotHub)(nil)
)

// NewHub makes a hub of volumes; Run brings it to life.
func NewHub(p Poller) *Hub {
	return newHub(kind[volume.ID, volume.Volume]{
		noun: "volume", read: p.Volume, selects: true,
		list: func(ctx context.Context, q query[volume.ID]) ([]volume.Volume, bool, error) {
			return p.Select(ctx, volume.Selection{Page: volume.Page{Marker: q.after, Limit: pageLimit}, Status: q.status, Since: q.since})
		},
		look: func(v volume.Volume) look[volume.ID] {
			return look[volume.ID]{id: v.ID, status: v.Status, changed: later(v.CreatedAt, v.UpdatedAt)}
		},
	})
}

// NewSnapshotHub makes a hub of snapshots; Run brings it to life.
func NewSnapshotHub(p SnapshotPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{
		noun: "snapshot", read: p.Snapshot, look: lookAtSnapshot,
		list: func(ctx context.Context, q query[volume.SnapshotID]) ([]volume.Snapshot, bool, error) {
			page, err := p.Snapshots(ctx, volume.SnapshotPage{Marker: q.after, Limit: pageLimit})
			return page, len(page) > 0, err
		},
	})
}

// NewBackupHub makes a hub of backups, which are read one by one; Run brings it to life.
func NewBackupHub(p BackupPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{noun: "backup", read: p.Backup, look: lookAtSnapshot})
}

// NewServerHub makes a hub of what is attached to servers; Run brings it to life.
func NewServerHub(p ServerPoller) *ServerHub {
	return newHub(kind[volume.ServerID, []volume.Attachment]{
		noun: "server", read: p.ServerAttachments, look: func([]volume.Attachment) look[volume.ServerID] { return look[volume.ServerID]{status: "there"} },
	})
}

func lookAtSnapshot(s volume.Snapshot) look[volume.SnapshotID] {
	return look[volume.SnapshotID]{id: s.ID, status: s.Status}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// kind is what a hub must know of the objects it watches.
type kind[ID ~string, T any] struct {
	noun    string
	read    func(ctx context.Context, id ID) (T, error)
	list    func(ctx context.Context, q query[ID]) (page []T, more bool, err error) // nil where none is worth it
	selects bool                                                                    // list heeds the query's status and since
	look    func(T) look[ID]
}

// query is a page of a list: what comes after one object; of one status, or changed since, where the kind selects.
type query[ID ~string] struct {
	after  ID
	status volume.Status
	since  time.Time
}

// look is what of an object its hub looks at. ID is empty where an object does not tell it.
type look[ID ~string] struct {
	id      ID
	status  volume.Status
	changed time.Time // by the cloud's clock
}

// Meter is told what a hub does. Its methods are called from any goroutine and must not block.
type Meter interface {
	// Waiting says how many wait, and since when the one that waits longest; zero when nobody does.
	Waiting(waiters int, oldest time.Time)
	// Called says that the cloud was asked: "single", "list" (all), "changes" (what changed) or "deleting" (what is being deleted).
	Called(how string)
}

type hub[ID ~string, T any] struct {
	kind   kind[ID, T]
	meter  Meter
	join   chan *waiter[ID, T]
	left   chan struct{} // somebody has left since the loop looked last
	closed chan struct{}
}

func newHub[ID ~string, T any](k kind[ID, T]) *hub[ID, T] {
	return &hub[ID, T]{kind: k, meter: unmeasured{}, join: make(chan *waiter[ID, T]), left: make(chan struct{}, 1), closed: make(chan struct{})}
}

type unmeasured struct{}

func (unmeasured) Waiting(int, time.Time) {}
func (unmeasured) Called(string)          {}

// Measured makes the hub tell m what it does. It is called before Run.
func (h *hub[ID, T]) Measured(m Meter) *hub[ID, T] {
	h.meter = m
	return h
}

// reading is one answer of the cloud about one object.
type reading[T any] struct {
	object T
	ok     bool  // the object exists
	err    error // it is not known; or, with absent, the cloud's words for that it does not exist
	absent bool
}

// Await implements volume.Waiter and volume.SnapshotWaiter. A cloud that cannot be reached is asked again until ctx ends; a cloud that refuses to tell ends
// the wait with its error. After Run has ended the answer is Unavailable.
func (h *hub[ID, T]) Await(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error) {
	return h.wait(ctx, &waiter[ID, T]{id: id}, func(r reading[T]) (finished bool, err error) {
		switch {
		case r.absent:
			return done(r.object, false)
		case transient(r.err):
			return false, nil
		case r.err != nil:
			return true, r.err
		}
		return done(r.object, true)
	})
}

// Read reads one object once, together with whoever reads it at the same time. The answer was read after the call began, and is
// the cloud's whatever it is.
func (h *hub[ID, T]) Read(ctx context.Context, id ID) (T, error) {
	return h.wait(ctx, &waiter[ID, T]{id: id, once: true}, func(r reading[T]) (bool, error) { return true, r.err })
}

func (h *hub[ID, T]) wait(ctx context.Context, w *waiter[ID, T], done func(reading[T]) (bool, error)) (T, error) {
	var none T
	ctx, leave := context.WithCancel(ctx)
	defer func() {
		leave() // the loop drops waiters whose context has ended
		select {
		case h.left <- struct{}{}:
		default:
		}
	}()
	w.ctx, w.readings = ctx, make(chan reading[T], 1)
	var last *reading[T] // nil until there is one
	select {
	case h.join <- w:
	case <-h.closed:
		return none, h.stopping(w.id)
	case <-ctx.Done():
		return none, h.interrupted(ctx, w.id, last)
	}
	for {
		select {
		case r := <-w.readings:
			last = &r
			if finished, err := done(r); finished || err != nil {
				return r.object, err
			}
		case <-h.closed:
			return none, h.stopping(w.id)
		case <-ctx.Done():
			return none, h.interrupted(ctx, w.id, last)
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
	var seen string
	switch {
	case last == nil:
		seen = "it has not been read yet"
	case last.absent:
		seen = "it does not exist"
	case last.err != nil:
		seen = "the last try to read it failed: " + last.err.Error()
	default:
		seen = "it is " + string(h.kind.look(last.object).status)
	}
	return volume.Errorf(volume.KindOf(ctx.Err()), "%s %s: %s; a retry resumes the wait: %w", h.kind.noun, id, seen, ctx.Err()).Op("wait")
}
