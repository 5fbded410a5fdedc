package cloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/gophercloud/gophercloud/v2"
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

// errorf makes an error. It makes the text public, which may hold a reply of a cloud.
func errorf(reason error, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{reason: reason, message: Public(err.Error()), cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.message }

// Unwrap returns the kind, one of the package's Err values, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}

// RequestError is the failure of a request, with a text that people, files, events and logs may have. The texts of gophercloud and net/http have
// the URL, which may have a login, and what the cloud has answered.
type RequestError struct {
	Said  string // the message of the service; empty if the answer has none
	text  string
	cause error
}

func (e *RequestError) Error() string { return e.text }
func (e *RequestError) Unwrap() error { return e.cause }

// shortestSecret is the length from which on a secret is taken out by its value. A shorter one may be an ordinary word.
const shortestSecret = 8

// failure is an error of a request with these tokens as a RequestError, without them and the secrets of the login. A request without a token is a
// login, which sends the password, so the error has no message of its answer.
func (s Settings) failure(err error, tokens ...string) error {
	if err == nil {
		return nil
	}
	hide := func(text []byte) []byte {
		for _, secret := range append([]string{string(s.Token), string(s.Password), string(s.ApplicationCredentialSecret)}, tokens...) {
			if len(secret) >= shortestSecret {
				text = bytes.ReplaceAll(text, []byte(secret), []byte(redacted))
			}
		}
		return text
	}
	e := &RequestError{cause: err}
	var answer gophercloud.ErrUnexpectedResponseCode
	var login *gophercloud.ErrUnableToReauthenticate
	switch {
	case errors.As(err, &login):
		e.text = "cannot get a new token: " + reason(login.ErrReauth)
	case errors.As(err, &answer):
		if len(tokens) > 0 && len(answer.Body) <= maxErrorBody {
			_, said := fault(hide(answer.Body))
			e.Said = Public(string(hide([]byte(said)))) // also what JSON had escaped, before Public cuts it
		}
		e.text = fmt.Sprintf("HTTP %d: %s", answer.Actual, cmp.Or(e.Said, http.StatusText(answer.Actual)))
	default:
		e.text = reason(err)
	}
	e.text = Public(string(hide([]byte(e.text))))
	return e
}

// quoted is what net/http and the decoders quote of an answer that they cannot read.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)|malformed MIME header line: .*`)

// reason is the text of an error without the URL that net/http puts before it, and without what it quotes. Of a certificate it quotes names.
func reason(err error) string {
	var network *url.Error
	if errors.As(err, &network) {
		err = network.Err
	}
	if isTLS(err) {
		return err.Error()
	}
	text := err.Error()
	return quoted.ReplaceAllString(text[:min(len(text), longestSearch)], `"…"`)
}

// Fault returns the key and the message of an error body: {"badRequest": {"code": 400, "message": "…"}}, under any key. It ignores anything else:
// the HTML of a proxy says less than the status.
func Fault(body []byte) (name, message string) {
	name, message = fault(body)
	return name, Public(message)
}

func fault(body []byte) (name, message string) {
	var faults map[string]json.RawMessage
	if len(body) > maxErrorBody || json.Unmarshal(body, &faults) != nil { // a status that another request asks for may have more
		return "", ""
	}
	for name, raw := range faults {
		var fault struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &fault) == nil && fault.Message != "" {
			return name, fault.Message
		}
	}
	return "", ""
}
