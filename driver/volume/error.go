package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says what an error means for the caller. It is the domain's whole vocabulary of failure: package rpc turns kinds into
// gRPC codes, package openstack turns HTTP replies into kinds, and nobody else decides either.
type Kind int

// The kinds of error. The zero Kind is Unknown: something this driver did not foresee.
const (
	Unknown          Kind = iota
	InvalidArgument       // the request itself is wrong and will stay so
	NotFound              // a named object does not exist
	Conflict              // an object's present state forbids this, and waiting will not help (attached elsewhere, has snapshots)
	Busy                  // an object is changing or locked; the same request may succeed later
	Incompatible          // an object of that name exists and differs from what is asked
	OutOfRange            // a size outside what is allowed
	Exhausted             // a quota, a zone or a server's disk slots are full
	Unauthenticated       // Keystone or a service refuses our credentials
	PermissionDenied      // a policy or an access rule forbids the call
	Unavailable           // the cloud cannot be reached or answers 429 or 5xx
	DeadlineExceeded      // the caller's deadline came first; a retry resumes the work
	Canceled              // the caller went away; a retry resumes the work
	Failed                // the cloud tried and gave up (an object went to an error state)
	Unimplemented         // this driver or this cloud does not do that
	DataLoss              // going on could destroy data; refused
	NotHere               // the zone asked for cannot have it; another may
)

var kindNames = [...]string{
	"unknown", "invalid argument", "not found", "conflict", "busy", "incompatible", "out of range", "exhausted",
	"unauthenticated", "permission denied", "unavailable", "deadline exceeded", "canceled", "failed", "unimplemented", "data loss", "not in this zone",
}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return kindNames[k]
}

// Kinds lists every kind, for tests that walk tables.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// Error is a kind for the machine and a sentence for the person.
type Error struct {
	Kind Kind
	// Operation is what was tried, as a verb: "attach".
	Operation string
	// RequestID is OpenStack's X-Openstack-Request-Id of the call that failed; empty where no call was made.
	RequestID string
	// Sent is true once a request that changes the cloud may have reached it. Answers after that must not be final:
	// external-provisioner forgets a volume after a final code.
	Sent bool
	// SentAt is when that request was sent; zero where nobody knows.
	SentAt time.Time

	message string
	cause   error
}

// Errorf makes an error of kind k. Every %w of the format keeps its error reachable by errors.Is and errors.As.
func Errorf(k Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Kind: k, message: err.Error()}
	switch wrapped := err.(type) {
	case interface{ Unwrap() error }:
		e.cause = wrapped.Unwrap()
	case interface{ Unwrap() []error }:
		e.cause = err
	}
	return e
}

// Interrupted is the error of an operation whose context has ended: DeadlineExceeded or Canceled. The format says on which object.
func Interrupted(ctx context.Context, format string, args ...any) *Error {
	return Errorf(KindOf(ctx.Err()), "%s: %w", fmt.Sprintf(format, args...), ctx.Err())
}

// Op names the operation that failed.
func (e *Error) Op(verb string) *Error { e.Operation = verb; return e }

// Request notes OpenStack's request id.
func (e *Error) Request(id string) *Error { e.RequestID = id; return e }

// AfterWrite marks that the cloud may have been changed before the failure.
func (e *Error) AfterWrite() *Error { e.Sent = true; return e }

func (e *Error) Error() string {
	var b strings.Builder
	if e.Operation != "" {
		b.WriteString(e.Operation + ": ")
	}
	b.WriteString(e.message)
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Unwrap gives the cause, if one was wrapped.
func (e *Error) Unwrap() error { return e.cause }

// KindOf is the kind of the first *Error in err's chain; without one, that of a context's end; Unknown otherwise.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}

// Is reports whether err's chain holds an *Error of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// WithOp returns err with the operation that failed, unless it names one. The result is a new error: err may be shared.
func WithOp(err error, verb string) error {
	var named *Error
	if err == nil || errors.As(err, &named) && named.Operation != "" {
		return err
	}
	return Errorf(KindOf(err), "%w", err).Op(verb)
}

// AfterWrite gives err marked as coming after a request that may have changed the cloud, so that nobody answers it with a final
// code. The marked error is a new one: err may be shared.
func AfterWrite(err error) error {
	if err == nil || MayHaveWritten(err) {
		return err
	}
	return Errorf(KindOf(err), "%w", err).AfterWrite()
}

// MayHaveWritten reports whether any *Error among all that err wraps is marked as coming after a write.
func MayHaveWritten(err error) bool {
	return anyOf(err, func(e *Error) bool { return e.Sent })
}

// SentAt is when the request was sent whose outcome err leaves open; zero where nobody knows.
func SentAt(err error) (at time.Time) {
	anyOf(err, func(e *Error) bool {
		if e.Sent {
			at = e.SentAt
		}
		return !at.IsZero()
	})
	return at
}

// anyOf reports whether is holds for any *Error among all that err wraps. errors.As finds only the first.
func anyOf(err error, is func(*Error) bool) bool {
	if e, ours := err.(*Error); ours && e != nil && is(e) {
		return true
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return anyOf(wrapper.Unwrap(), is)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapper.Unwrap(), func(err error) bool { return anyOf(err, is) })
	}
	return false
}

// IgnoreNotFound returns nil for a NotFound error, and any other err unchanged.
func IgnoreNotFound(err error) error {
	if Is(err, NotFound) {
		return nil
	}
	return err
}

// RefusedByState reports whether a refusal may be about the state of an object, which a read of the object explains. Nova answers 400 alike
// for a volume that is attached to this server already, for one attached elsewhere, and for one that is changing.
func RefusedByState(refusal error) bool {
	switch KindOf(refusal) {
	case InvalidArgument, Conflict, Busy:
		return true
	}
	return false
}

// Because sets what Unwrap returns, without a change of the sentence.
func (e *Error) Because(cause error) *Error { e.cause = cause; return e }
