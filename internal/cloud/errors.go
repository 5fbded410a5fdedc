package cloud

import (
	"errors"
	"fmt"
)

// Kinds of failure before a cloud serves requests, for errors.Is. Every error of this package is one of these if a person can act
// on it. Its text is one sentence that names the cloud or the file. No text holds a secret.
var (
	ErrUnknownCloud  = errors.New("unknown cloud")              // no cloud of that name is configured, or none was chosen
	ErrBadFile       = errors.New("unreadable configuration")   // a file is missing or malformed
	ErrMisconfigured = errors.New("incomplete configuration")   // the settings cannot work with any cloud
	ErrUnreachable   = errors.New("cloud unreachable")          // no reply, or one that asks for a retry
	ErrUnauthorised  = errors.New("credentials refused")        // Keystone does not accept the credentials
	ErrNoService     = errors.New("service not in the catalog") // the catalog lacks it for this region and interface
	ErrOtherCloud    = errors.New("not the same cloud")         // another project or region than before, or than expected
)

// Error is one of the package's errors with a sentence for the user.
type Error struct {
	reason  error
	message string
	cause   error
}

// errorf makes an error. It cleans the text, which may hold a reply of a cloud.
func errorf(reason error, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{reason: reason, message: Clean(err.Error()), cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.message }

// Unwrap returns the kind, one of the package's Err values, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}
