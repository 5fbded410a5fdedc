package cloud

import (
	"errors"
	"fmt"
)

// What can go wrong before a cloud answers questions, for errors.Is. Every error of this package that a person can do something
// about is one of these and reads as one sentence that names the cloud or the file; none holds a secret.
var (
	ErrUnknownCloud  = errors.New("unknown cloud")              // no cloud of that name is configured, or none was chosen
	ErrBadFile       = errors.New("unreadable configuration")   // a file is missing or not what it should be
	ErrMisconfigured = errors.New("incomplete configuration")   // the settings cannot work, whatever the cloud says
	ErrUnreachable   = errors.New("cloud unreachable")          // no answer, or one that says "not now"
	ErrUnauthorised  = errors.New("credentials refused")        // Keystone does not accept the credentials
	ErrNoService     = errors.New("service not in the catalog") // the cloud does not have it, in this region and interface
)

// Error is one of the package's errors with a sentence for the person.
type Error struct {
	reason  error
	message string
	cause   error
}

// errorf makes an error. Its text may hold what a cloud has answered, so it is cleaned.
func errorf(reason error, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{reason: reason, message: Clean(err.Error()), cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.message }

// Unwrap gives the reason, one of the package's Err values, and the cause where there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}
