package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// Kind is what an error means for the caller. The code that finds the failure chooses the kind. For an answer of Cinder or Nova that is package
// openstack (error.go), for one of the Kubernetes API package kube. Only package rpc turns kinds into gRPC codes (codes.go).
type Kind int

// The kinds. The zero Kind is Unknown: an error that this driver does not expect. A new kind also needs a name in kindNames and codes in
// package rpc. If sidecars retry after its code, it belongs in Final of package idempotent too. Tests fail where one of these is missing.
const (
	Unknown          Kind = iota
	InvalidArgument       // the request is wrong and stays wrong
	NotFound              // an object that the request names does not exist
	Conflict              // the state of an object forbids the request until somebody acts, such as a volume attached elsewhere
	Busy                  // an object is changing or locked; a retry may succeed
	Incompatible          // an object of that name exists and differs from the request
	OutOfRange            // a size is outside the allowed range
	Exhausted             // a quota, a zone, or the disk slots of a server are used up
	Unauthenticated       // Keystone or a service rejects the credentials
	PermissionDenied      // a policy or an access rule forbids the call
	Unavailable           // the driver cannot reach the cloud, or the cloud answers 429 or 5xx
	DeadlineExceeded      // the deadline of the caller has passed; a retry resumes the work
	Canceled              // the caller has gone; a retry resumes the work
	Failed                // the cloud tried and gave up: an object is in an error status
	Unimplemented         // this driver or this cloud does not support the request
	DataLoss              // the driver refuses the request because it could destroy data
	NotInZone             // the requested zone cannot have the object, but another may
	NotOwned              // the object belongs to another cluster, or may do so

	KindCount // no kind; new kinds go above
)

var kindNames = [KindCount]string{
	Unknown:          "unknown",
	InvalidArgument:  "invalid argument",
	NotFound:         "not found",
	Conflict:         "conflict",
	Busy:             "busy",
	Incompatible:     "incompatible",
	OutOfRange:       "out of range",
	Exhausted:        "exhausted",
	Unauthenticated:  "unauthenticated",
	PermissionDenied: "permission denied",
	Unavailable:      "unavailable",
	DeadlineExceeded: "deadline exceeded",
	Canceled:         "canceled",
	Failed:           "failed",
	Unimplemented:    "unimplemented",
	DataLoss:         "data loss",
	NotInZone:        "not in this zone",
	NotOwned:         "not owned",
}

func (k Kind) String() string {
	if k < 0 || k >= KindCount {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return kindNames[k]
}

// Error is a kind and a cause for programs, and a sentence for people.
type Error struct {
	Kind Kind
	// CauseID is why the operation failed; empty: that of the wrapped error, or the usual one of the kind. CauseOf decides.
	CauseID cause.ID
	// Operation is the operation that failed, as a verb: "attach".
	Operation string
	// RequestID is the X-Openstack-Request-Id of the OpenStack request that failed; empty if the driver sent none.
	RequestID string
	// Sent is true if a request that changes the cloud may have reached it. Then the RPC must not return a final code: external-provisioner
	// forgets the volume after one.
	Sent bool
	// SentAt is when the driver sent that request; zero if unknown.
	SentAt time.Time
	// Answered is true if the service itself has answered that request, so that it does not work on it any more. What it did before shows soon.
	Answered bool

	message string
	cause   error
}

// Errorf returns an error of kind k. errors.Is and errors.As find the error of every %w in the format.
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

// Cause sets why the operation failed, and returns e.
func (e *Error) Cause(id cause.ID) *Error { e.CauseID = id; return e }

// Op sets the operation that failed, and returns e.
func (e *Error) Op(verb string) *Error { e.Operation = verb; return e }

// Request sets the OpenStack request ID, and returns e.
func (e *Error) Request(id string) *Error { e.RequestID = id; return e }

// AfterWrite marks that the cloud may have changed before the failure, and returns e.
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

// Unwrap returns the wrapped error, if any.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the first *Error in the chain of err. Without one, it returns the kind of a context error, otherwise Unknown.
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

// usualCauses are those of an error that names none. The other kinds have no usual cause: who makes an error of one names its cause, and a test
// reads the source.
var usualCauses = map[Kind]cause.ID{
	Unknown: cause.DriverDefect, InvalidArgument: cause.RequestInvalid, NotFound: cause.RequestMissing, Busy: cause.VolumeBusy, OutOfRange: cause.RequestSize,
	DeadlineExceeded: cause.RequestDeadline, Canceled: cause.RequestCanceled, Unimplemented: cause.RequestUnsupported,
	NotOwned: cause.VolumeOtherCluster,
}

// CauseOf returns the cause of the outermost *Error in the chain of err that names one. Without one it is the usual cause of KindOf(err), which may
// be empty.
func CauseOf(err error) cause.ID {
	var id cause.ID
	if err == nil || anyOf(err, func(e *Error) bool { id = e.CauseID; return id != "" }) {
		return id
	}
	return usualCauses[KindOf(err)]
}

// Is reports whether err is not nil and KindOf(err) is k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// WithOp returns err with the operation that failed, unless err names one already. It does not change err.
func WithOp(err error, verb string) error {
	var named *Error
	if err == nil || errors.As(err, &named) && named.Operation != "" {
		return err
	}
	return Errorf(KindOf(err), "%w", err).Op(verb)
}

// AfterWrite returns err marked as one after which the cloud may have changed, so that the RPC returns no final code. It does not change err.
func AfterWrite(err error) error {
	if err == nil || MayHaveWritten(err) {
		return err
	}
	return Errorf(KindOf(err), "%w", err).AfterWrite()
}

// MayHaveWritten reports whether err, or any error that it wraps, is marked AfterWrite.
func MayHaveWritten(err error) bool {
	return anyOf(err, func(e *Error) bool { return e.Sent })
}

// SentAt returns when the driver sent the request whose outcome is unknown after err; zero if unknown.
func SentAt(err error) (at time.Time) {
	anyOf(err, func(e *Error) bool {
		if e.Sent {
			at = e.SentAt
		}
		return !at.IsZero()
	})
	return at
}

// Answered reports whether the service has answered the request whose outcome is unknown after err.
func Answered(err error) bool {
	return anyOf(err, func(e *Error) bool { return e.Sent && e.Answered })
}

// anyOf reports whether is returns true for err or any *Error that it wraps. errors.As finds only the first.
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

// ListChanged makes a 404 for a page after a marker Busy. Somebody, such as a retention job, has deleted the object of the marker while the driver
// read the list. It says nothing about an object that the caller asked for. It leaves other errors as they are.
func ListChanged(err error, marker string) error {
	if marker == "" || !Is(err, NotFound) {
		return err
	}
	return Errorf(Busy, "somebody deleted %s while the driver read a list that has it; a retry reads the list again: %w", marker, err)
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

// UnreadError is in the chain of the error of a wait that ended while the reads of its object failed.
type UnreadError struct{ Cause error }

func (e UnreadError) Error() string { return e.Cause.Error() }
func (e UnreadError) Unwrap() error { return e.Cause }
