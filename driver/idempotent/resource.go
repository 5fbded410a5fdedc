// Package idempotent holds the rule by which volumes, snapshots and backups are created: find by name, or create; the oldest object of the
// name counts; an error is final only where nothing of the name exists or may still appear.
//
// It remembers creates whose answers were lost (holdoff.go). After a restart, or in another replica, such a create is sent again at once,
// so a duplicate may result. A duplicate that a call may have returned stays and is reported.
package idempotent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Resource is one kind of object that is created by name: volumes, snapshots, or backups. Its methods are the steps of one rule: find by name,
// or create; the oldest object of the name counts; an error is final only where nothing of the name exists or may still appear.
type Resource[T any] struct {
	Noun string // "volume", for sentences and for CountDuplicate
	// List reads every object of that name; names are not unique in Cinder.
	List func(ctx context.Context, name string) ([]T, error)
	// Facts says what the rule must know about an object.
	Facts func(object T) Facts
	// AwaitDeletable waits until Cinder takes a DELETE of an object, or never will.
	AwaitDeletable func(ctx context.Context, object T) error
	// Delete asks Cinder to delete an object. NotFound counts as success.
	Delete func(ctx context.Context, object T) error
	// AwaitDeleted waits until Cinder answers 404 for an object.
	AwaitDeleted func(ctx context.Context, object T) error
	Log          *slog.Logger
	// CountDuplicate counts an object that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)

	holdOffs holdOffs
}

// Facts are what the rule must know about one object.
type Facts struct {
	ID, Name, Status string
	CreatedAt        time.Time // by Cinder's clock
	SentAt           time.Time // by the driver's clock; zero where the object does not say
	CreatedForName   bool      // this driver created it, for this cluster and for the request that it is named for
	InUse            bool      // something uses it, so it is never deleted
	BeingDeleted     bool
}

// ours reports whether the driver may delete the object without an RPC that names it.
func (f Facts) ours() bool { return f.CreatedForName && !f.InUse }

// Named reads the objects of that name, oldest first, once those that are being deleted are gone. Its errors are marked AfterWrite: an
// earlier call may have left an object.
func (r *Resource[T]) Named(ctx context.Context, name string) ([]T, error) {
	for {
		found, err := r.List(ctx, name)
		if err != nil {
			return nil, volume.AfterWrite(err)
		}
		i := slices.IndexFunc(found, func(object T) bool { return r.Facts(object).BeingDeleted })
		if i < 0 {
			slices.SortFunc(found, func(a, b T) int {
				x, y := r.Facts(a), r.Facts(b)
				return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
			})
			r.endHoldOff(name, found)
			return found, nil
		}
		if err := r.AwaitDeleted(ctx, found[i]); err != nil {
			return nil, volume.AfterWrite(err)
		}
	}
}

// FindBeforeCreate reads the objects of that name as Named does. Where there is none and a create may not be sent yet, it returns HeldOff's
// error.
func (r *Resource[T]) FindBeforeCreate(ctx context.Context, name string) ([]T, error) {
	found, err := r.Named(ctx, name)
	if err == nil && len(found) == 0 {
		err = r.HeldOff(name)
	}
	return found, err
}

// endHoldOff ends the hold-off of a name once the create that was lost has shown what it made.
func (r *Resource[T]) endHoldOff(name string, found []T) {
	if slices.ContainsFunc(found, func(object T) bool { return r.Facts(object).CreatedForName }) {
		r.holdOffs.end(r.Noun + " " + name)
	}
}

// HeldOff returns nil where a create of that name may be sent, else a retryable error that says why not, and until when.
func (r *Resource[T]) HeldOff(name string) error { return r.holdOffs.check(r.Noun + " " + name) }

// Lost begins the hold-off of a create whose answer was lost, and returns the error to answer with.
func (r *Resource[T]) Lost(name string, lost error) error {
	return r.holdOffs.begin(r.Noun+" "+name, name, lost)
}

// FinalOrRetryable returns err unchanged where a final answer is safe: nothing has the name, and no create request for it may still be in
// progress. After a final answer the sidecar forgets the request, and nobody would ever delete such an object. Any other err is marked
// AfterWrite, and the next retry uses what exists. Incompatible is final: an object exists, and no retry would change it.
func (r *Resource[T]) FinalOrRetryable(ctx context.Context, name string, err error) error {
	if !Final(err) || volume.Is(err, volume.Incompatible) {
		return err
	}
	if held := r.HeldOff(name); held != nil {
		return volume.Errorf(volume.KindOf(err), "%w; this error is not final yet: %w", err, held).AfterWrite()
	}
	found, unread := r.List(ctx, name)
	switch {
	case unread != nil:
		return volume.Errorf(volume.KindOf(err), "%w; the driver cannot read whether another request has created it, and retries: %w", err, unread).AfterWrite()
	case len(found) > 0:
		return volume.Errorf(volume.KindOf(err), "%w; %s %s has the same name, and the next retry uses it", err, r.Noun, r.Facts(found[0]).ID).AfterWrite()
	}
	return err
}

// Final reports whether the sidecars take a failure for the end of a request. After other kinds they retry, marked or not.
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

// Discard deletes an object that this driver created, and waits until it is gone. Why is for the log.
func (r *Resource[T]) Discard(ctx context.Context, object T, why string) error {
	f := r.Facts(object)
	r.Log.InfoContext(ctx, "deleting a "+r.Noun+" that this driver created", r.Noun, f.ID, "name", f.Name, "status", f.Status, "reason", why)
	if err := r.Delete(ctx, object); err != nil && !volume.Is(err, volume.NotFound) {
		return err
	}
	return r.AwaitDeleted(ctx, object)
}

// DeleteYounger deletes the duplicates that several replicas created at once: all of found but the first, where no call can have returned
// them (duplicate.go). It reports those that stay. Created is the ID of the object that this call created, if it created one.
func (r *Resource[T]) DeleteYounger(ctx context.Context, found []T, created string) error {
	counts := r.Facts(found[0])
	for _, object := range found[1:] {
		f := r.Facts(object)
		reason := ""
		switch {
		case !f.ours():
			reason = staysForeign
		case f.ID != created && !f.creation().surelyAfter(counts.creation()):
			reason = staysReturned
		default:
			if err := r.AwaitDeletable(ctx, object); err != nil {
				return volume.AfterWrite(err)
			}
			if err := r.Discard(ctx, object, r.Noun+" "+counts.ID+" has the same name and is older"); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			r.reportDuplicate(ctx, f, counts, reason)
		}
	}
	return nil
}

// The reasons for which a duplicate stays.
const (
	staysForeign  = "it is attached, or this driver did not create it for this request"
	staysReturned = "a call may have returned it: the creation times do not show that it came later"
)

// reportDuplicate logs and counts a duplicate that the driver does not delete.
func (r *Resource[T]) reportDuplicate(ctx context.Context, duplicate, counts Facts, reason string) {
	r.Log.WarnContext(ctx, "a duplicate "+r.Noun+" stays; if nothing uses it, delete it by hand", r.Noun, duplicate.ID, "name", duplicate.Name,
		"in use instead", counts.ID, "reason", reason)
	if r.CountDuplicate != nil {
		r.CountDuplicate(r.Noun)
	}
}
