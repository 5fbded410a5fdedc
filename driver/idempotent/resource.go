// Package idempotent is the rule by which the driver creates volumes, snapshots and backups exactly once: find the object by its name, or
// create it. Names are not unique in Cinder. Of several objects the oldest is used, and its duplicates are deleted where that is safe
// (duplicate.go). An error is final only if no object of the name exists, and none can still appear.
//
// A create outlives its caller (Send), and a clean exit waits for it.
//
// The package keeps in memory which creates have an unknown outcome (holdoff.go). For those the driver got no answer, one that it cannot read,
// or any 5xx (volume.MayHaveWritten). Only after an answer of Cinder itself a list shows the outcome within seconds (volume.Answered).
// A restart, or a change to another replica, loses that memory. The driver then sends such a create again at once, and a duplicate may
// result. The driver reports a duplicate that it keeps.
package idempotent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Resource is one kind of object: volumes, snapshots, or backups. Its methods are the steps of the rule.
type Resource[T any] struct {
	Noun string // "volume", for errors, logs and CountDuplicate
	// List reads every object of a name.
	List func(ctx context.Context, name string) ([]T, error)
	// ListCreated lists the objects that were created since a time by the clock of Cinder, and whether there are more. Nil where Cinder has no such
	// list.
	ListCreated func(ctx context.Context, since time.Time) (found []T, more bool, err error)
	// Read reads one object by its ID; NotFound if it does not exist.
	Read func(ctx context.Context, id string) (T, error)
	// Candidate returns what the rule must know about an object.
	Candidate func(object T) Candidate
	// AwaitDeletable waits until Cinder accepts a DELETE of an object, or until it is certain that Cinder never will.
	AwaitDeletable func(ctx context.Context, object T) error
	// Delete sends the DELETE of an object. NotFound counts as success.
	Delete func(ctx context.Context, object T) error
	// AwaitDeleted waits until Cinder answers 404 for an object.
	AwaitDeleted func(ctx context.Context, object T) error
	Requests     *inflight.Calls // creates whose callers have left
	Log          *slog.Logger
	// CountDuplicate counts a duplicate that the driver keeps; nil counts nothing.
	CountDuplicate func(noun string)

	holdOffs   holdOffs
	made       made
	created    createdLists[T]
	searchTook atomic.Int64 // nanoseconds of the last search for a name
}

// Candidate is what the rule must know about an object.
type Candidate struct {
	ID, Name, Status string
	CreatedAt        time.Time // by the clock of Cinder
	SentAt           time.Time // by the clock of the driver; zero if the metadata of the object does not have it
	CreatedForName   bool      // this driver created it, for this cluster and a request of this name
	InUse            bool      // so the driver never deletes it
	BeingDeleted     bool
}

// ours reports whether the driver may delete the object without an RPC that names it.
func (f Candidate) ours() bool { return f.CreatedForName && !f.InUse }

// Named waits until the objects of a name that are being deleted are gone, and returns the others, oldest first. Its errors are marked
// AfterWrite, because an earlier call may have created an object. NotOwned is not: every object of the name belongs to another cluster.
func (r *Resource[T]) Named(ctx context.Context, name string) ([]T, error) {
	return r.NamedWith(ctx, name, "")
}

// NamedWith is Named for a call that knows an object of the name by its ID. A list may lack an object that exists, for example if it comes from
// a database server of Cinder that lags. Such a list does not show that no older object exists either. NamedWith then lists again for a while,
// and at last returns a retryable error. The next call creates no other object during the hold-off that begins with it.
func (r *Resource[T]) NamedWith(ctx context.Context, name, known string) ([]T, error) {
	for {
		found, err := r.list(ctx, name, known)
		if volume.Is(err, volume.NotOwned) {
			return nil, err
		}
		if err != nil {
			return nil, volume.AfterWrite(err)
		}
		i := slices.IndexFunc(found, func(object T) bool { return r.Candidate(object).BeingDeleted })
		if i < 0 {
			r.sort(found)
			return found, nil
		}
		if err := r.AwaitDeleted(ctx, found[i]); err != nil {
			return nil, volume.AfterWrite(err)
		}
	}
}

// sort sorts objects by age, the oldest first.
func (r *Resource[T]) sort(found []T) {
	slices.SortFunc(found, func(a, b T) int {
		x, y := r.Candidate(a), r.Candidate(b)
		return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
	})
}

// How long a list may lack an object that exists, and how often the driver lists again in that time.
const (
	lagTime  = 10 * time.Second
	lagPause = time.Second
)

// list reads every object of a name. If known is not empty, the list has the object with that ID, or the object does not exist.
func (r *Resource[T]) list(ctx context.Context, name, known string) ([]T, error) {
	for begin := time.Now(); ; {
		searched := time.Now()
		found, err := r.List(ctx, name)
		r.searchTook.Store(int64(time.Since(searched)))
		if known != "" && volume.Is(err, volume.NotOwned) { // the list has objects of others only
			found, err = nil, nil
		}
		if err != nil || known == "" {
			return found, err
		}
		if slices.ContainsFunc(found, func(object T) bool { return r.Candidate(object).ID == known }) {
			r.holdOffs.endAccepted(r.Noun + " " + name)
			return found, nil
		}
		if _, err := r.Read(ctx, known); err != nil && (!volume.Is(err, volume.NotFound) || time.Since(begin) >= volume.Lag) {
			return found, volume.IgnoreNotFound(err)
		}
		if time.Since(begin) >= lagTime {
			lag := volume.Errorf(volume.Busy, "%s %s exists, but Cinder's list of the name %q does not show it; a retry lists again", r.Noun, known, name).Op("create")
			r.holdOffs.put(r.Noun+" "+name, holdOff{until: time.Now().Add(createHoldOff), cause: "Cinder's list of the name does not show " + r.Noun + " " + known})
			return nil, lag
		}
		if volume.Sleep(ctx, lagPause) != nil {
			return nil, volume.Interrupted(ctx, "%s %s: Cinder's list of the name %q does not show it yet", r.Noun, known, name).Op("create")
		}
	}
}

// FindBeforeCreate is Named for a call that creates an object if there is none. If the driver created one of the objects for this name, the
// outcome of a lost create is known, and its hold-off ends. Other reads do not end it: a clean-up may find the object of another replica. If
// there is no object and the driver must not create one yet, FindBeforeCreate returns the error of HeldOff.
func (r *Resource[T]) FindBeforeCreate(ctx context.Context, name string) ([]T, error) {
	found, err := r.Named(ctx, name)
	if volume.Is(err, volume.NotOwned) && r.HeldOff(name) != nil {
		return nil, r.HeldOff(name) // of this cluster an object may still appear
	}
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(found, func(object T) bool { return r.Candidate(object).CreatedForName }) {
		r.holdOffs.end(r.Noun + " " + name)
	}
	if len(found) == 0 {
		return nil, r.HeldOff(name)
	}
	return found, nil
}

// HeldOff returns nil if the driver may send a create of the name. Otherwise it returns a retryable error that says why not, and until when.
func (r *Resource[T]) HeldOff(name string) error { return r.holdOffs.check(r.Noun + " " + name) }

// Send sends the create of a name. The create outlives its caller: a sidecar that dies in the middle must not make a lost answer. Unlock
// unlocks the name; Send calls it when the cloud has answered. A lost answer begins a hold-off. Then the error is retryable and wraps that of
// send. Success begins a short one, until a list of the name shows the object. If this call ends before that, the next must not create another.
func (r *Resource[T]) Send(ctx context.Context, name string, unlock func(), send func(context.Context) (T, error)) (T, error) {
	request := inflight.Request{Verb: "create", Object: r.Noun + " " + name, Service: "Cinder", Log: r.Log, Release: unlock}
	return inflight.Complete(ctx, r.Requests, request, func(ctx context.Context) (T, error) {
		created, err := send(ctx)
		switch {
		case err == nil:
			r.holdOffs.accepted(r.Noun + " " + name)
			r.made.put(r.Candidate(created).ID)
		case volume.MayHaveWritten(err):
			err = r.holdOffs.begin(r.Noun+" "+name, name, err)
		}
		return created, err
	})
}

// FinalOrRetryable returns err unchanged if a final answer is safe: no object has the name, and no create of it can still be in progress.
// After a final answer the sidecar forgets the request, and an object that appears later would never be deleted. Otherwise it marks err
// AfterWrite, and the next retry uses the object. Incompatible is always final: an object exists, and no retry would change that.
func (r *Resource[T]) FinalOrRetryable(ctx context.Context, name string, err error) error {
	if !Final(err) || volume.Is(err, volume.Incompatible) {
		return err
	}
	if held := r.HeldOff(name); held != nil {
		return volume.Errorf(volume.KindOf(err), "%w; the driver retries, because an earlier create may still succeed: %w", err, held).AfterWrite()
	}
	found, unread := r.List(ctx, name)
	switch {
	case volume.Is(unread, volume.NotOwned): // none is this cluster's
		return err
	case unread != nil:
		return volume.Errorf(volume.KindOf(err), "%w; the driver retries, because it cannot read whether another request has created the object: %w", err, unread).AfterWrite()
	case len(found) > 0:
		return volume.Errorf(volume.KindOf(err), "%w; %s %s has the same name, and the driver uses it in the next retry", err, r.Noun, r.Candidate(found[0]).ID).AfterWrite()
	}
	return err
}

// Final reports whether a sidecar ends a request after err. Its kinds must agree with the gRPC codes of package rpc, where a test compares them.
func Final(err error) bool {
	if err == nil || volume.MayHaveWritten(err) {
		return false
	}
	switch volume.KindOf(err) {
	case volume.Busy, volume.Unavailable, volume.DeadlineExceeded, volume.Canceled:
		return false
	}
	return true
}

// Discard deletes an object that this driver created, and waits until it is gone. The log shows reason.
func (r *Resource[T]) Discard(ctx context.Context, object T, reason string) error {
	f := r.Candidate(object)
	r.Log.InfoContext(ctx, "deleting a "+r.Noun+" that this driver created", r.Noun, f.ID, "name", f.Name, "status", f.Status, "reason", reason)
	if err := r.PastLag(ctx, f.ID, func() error { return r.Delete(ctx, object) }); err != nil && !volume.Is(err, volume.NotFound) {
		return err
	}
	if err := r.AwaitDeleted(ctx, object); err != nil {
		return err
	}
	r.holdOffs.endAccepted(r.Noun + " " + f.Name) // what was accepted has shown, and is gone
	return nil
}

// DeleteYounger deletes all of found but the first, if no call can have returned them (duplicate.go). It logs and counts those that it
// keeps. Created is the ID of the object that this call created, or empty.
func (r *Resource[T]) DeleteYounger(ctx context.Context, found []T, created string) error {
	oldest := r.Candidate(found[0])
	for _, object := range found[1:] {
		f := r.Candidate(object)
		reason := ""
		switch {
		case !f.ours():
			reason = keptForeign
		case f.ID != created && !f.creation().surelyAfter(oldest.creation()):
			reason = keptReturned
		default:
			if err := r.AwaitDeletable(ctx, object); err != nil {
				return volume.AfterWrite(err)
			}
			switch err := r.Discard(ctx, object, r.Noun+" "+oldest.ID+" has the same name and is older"); {
			case err == nil:
			case !Final(err): // the cloud failed, or the caller left first; only a retry sees to it, and after OK there is none
				return volume.AfterWrite(err)
			default:
				reason = err.Error()
			}
		}
		if reason != "" {
			r.reportDuplicate(ctx, f, oldest, reason)
		}
	}
	return nil
}

// The reasons to keep a duplicate.
const (
	keptForeign  = "it is in use, or this driver did not create it for this request"
	keptReturned = "a call may have returned it: the creation times do not prove that it is younger"
)

// reportDuplicate logs and counts a duplicate that the driver keeps.
func (r *Resource[T]) reportDuplicate(ctx context.Context, duplicate, oldest Candidate, reason string) {
	r.Log.WarnContext(ctx, "the driver keeps a duplicate "+r.Noun+"; if nothing uses it, delete it manually", r.Noun, duplicate.ID, "name", duplicate.Name,
		"in use instead", oldest.ID, "reason", reason)
	if r.CountDuplicate != nil {
		r.CountDuplicate(r.Noun)
	}
}
