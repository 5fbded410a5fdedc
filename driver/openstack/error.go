package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// meaning is what one kind of HTTP answer means. The first row that fits decides.
type meaning struct {
	status int    // 0 fits any
	verb   string // "" fits any
	text   string // part of the answer's message; "" fits any
	kind   volume.Kind
}

// What Cinder and Nova answer, and what it means. Their 400 is often not about the request but about the object's state, which
// the text tells at best; the domain reads the object again where that matters. Texts are of Cinder and Nova from Queens to 2026.
var meanings = []meaning{
	{400, "delete volume", "", volume.Conflict}, // one text for all: attached, has snapshots, migrating, being deleted already
	{400, "attach volume", "already attached", volume.Conflict},
	{400, "attach volume", "same availability_zone", volume.Conflict},
	{400, "attach volume", "only supported starting with", volume.Unimplemented},
	{400, "attach volume", "status must be", volume.Busy},                // creating, detaching, reserved
	{400, "detach volume", "", volume.Busy},                              // detaching already, or attaching still
	{400, "delete snapshot", "", volume.Conflict},                        // one text for all: its status, or a group
	{400, "delete backup", "", volume.Conflict},                          // its status, or incremental backups that rest on it
	{400, "create snapshot", "status must be", volume.Busy},              // it was looked at before and has changed
	{400, "create snapshot", "Invalid volume", volume.Conflict},          // migrating, in maintenance, in error
	{400, "create backup", "must be available", volume.Busy},             // the snapshot's status, or the parent's: both were looked at before
	{400, "create backup", "No backups available", volume.Busy},          // to rest on, though there was one
	{400, "create volume", "Originating", volume.Busy},                   // the source's status, looked at before
	{400, "create volume", "vailability zone", volume.NotHere},           // Cinder has no such zone, the type is not in it, the source is in another
	{400, "retype volume", "only allowed on available", volume.Conflict}, // the types differ in multiattach
	{400, "retype volume", "Retype needs volume", volume.Conflict},       // its status, or its type already; the domain looks again
	{400, "retype volume", "", volume.InvalidArgument},
	{400, "add metadata", "is not allowed for", volume.Busy}, // maintenance, uploading
	{400, "", "Specified volume size", volume.OutOfRange},    // the type's provisioning:min_vol_size or max_vol_size
	{400, "extend volume", "", volume.Busy},                  // its status, or it has grown meanwhile: the size was looked at before
	{400, "", "", volume.InvalidArgument},
	{401, "", "", volume.Unauthenticated},               // with a fresh token it is something else: refused
	{403, "attach volume", "maximum", volume.Exhausted}, // Nova's TooManyDiskDevices
	{403, "", "Quota exceeded", volume.Exhausted},
	{403, "", "", volume.PermissionDenied},
	{404, "create volume", "Volume type", volume.InvalidArgument}, // a parameter of the request, not its source
	{404, "retype volume", "Volume type", volume.InvalidArgument},
	{404, "", "", volume.NotFound},
	{405, "", "", volume.Unimplemented},
	{406, "", "", volume.Unimplemented}, // the microversion
	{409, "attach volume", "in vm_state error", volume.Conflict},
	{409, "", "", volume.Busy}, // a task is under way on the server, or it is locked
	{413, "", "was rate-limited", volume.Unavailable},
	{413, "", "maximum allowed limit", volume.OutOfRange}, // the quota per_volume_gigabytes
	{413, "", "", volume.Exhausted},                       // Cinder's quotas
	{429, "", "", volume.Unavailable},
	{498, "", "", volume.Unavailable}, // Swift's and some proxies' 429
	{501, "", "", volume.Unimplemented},
}

func kindOf(status int, verb, text string) volume.Kind {
	for _, m := range meanings {
		if (m.status == status) && (m.verb == "" || m.verb == verb) && strings.Contains(text, m.text) {
			return m.kind
		}
	}
	if status >= 500 {
		return volume.Unavailable
	}
	return volume.Unknown
}

// interrupted is the error of a caller whose context has ended.
func interrupted(ctx context.Context, r request) *volume.Error {
	return volume.Errorf(volume.KindOf(ctx.Err()), "%s: %w", r.object, ctx.Err()).Op(r.verb)
}

// connectError says why there is no cloud to ask. Nothing was sent.
func connectError(ctx context.Context, r request, err error) *volume.Error {
	if ctx.Err() != nil {
		return interrupted(ctx, r)
	}
	kind := volume.Unavailable // broken settings too: whoever retries comes through once they are mended
	switch {
	case errors.Is(err, cloud.ErrUnauthorised):
		kind = volume.Unauthenticated
	case errors.Is(err, cloud.ErrNoService):
		kind = volume.Unimplemented
	}
	return volume.Errorf(kind, "%s: %w", r.object, err).Op(r.verb)
}

// requestError says what became of a request that did not succeed. A request that changes something counts as sent unless it is
// certain that the cloud has seen nothing of it.
func requestError(ctx context.Context, r request, err error, sent *transport.Sent) *volume.Error {
	failure := failureOf(ctx, r, err)
	var answer gophercloud.ErrUnexpectedResponseCode
	switch {
	case !r.writes() || errors.As(err, new(*gophercloud.ErrUnableToReauthenticate)):
	case errors.As(err, &answer):
		// A refusal (4xx) changed nothing; after a 5xx the write may have been carried out all the same.
		failure.Sent = answer.Actual < 400 || answer.Actual >= 500
	default:
		failure.Sent = !transport.NeverSent(err) && !sent.Never()
	}
	if failure.Sent {
		failure.SentAt = sent.At()
	}
	return failure
}

// failureOf is the error of a request that did not succeed.
func failureOf(ctx context.Context, r request, err error) *volume.Error {
	var answer gophercloud.ErrUnexpectedResponseCode
	var login *gophercloud.ErrUnableToReauthenticate
	switch {
	case errors.As(err, &login):
		return loginError(ctx, r, login.ErrReauth)
	case errors.As(err, &answer):
		return answerError(r, answer, errors.As(err, new(*gophercloud.ErrErrorAfterReauthentication)))
	}
	var throttled transport.ThrottledError
	switch {
	case errors.As(err, &throttled):
		return volume.Errorf(volume.Unavailable, "%s: %w", r.object, throttled).Op(r.verb)
	case ctx.Err() != nil:
		return interrupted(ctx, r)
	}
	return volume.Errorf(volume.Unavailable, "%s: no usable answer from %s: %w", r.object, serviceName(r), plain(err)).Op(r.verb)
}

// answerError is the error of an answer that is not the one hoped for.
func answerError(r request, answer gophercloud.ErrUnexpectedResponseCode, freshToken bool) *volume.Error {
	text := message(answer.Body)
	kind := kindOf(answer.Actual, r.verb, text)
	if answer.Actual == http.StatusUnauthorized && freshToken {
		// The credentials have just been accepted. Keystone's middleware answers so where an application credential's access
		// rules do not allow the request.
		kind, text = volume.PermissionDenied, "the credentials are valid, but not for this request; if they have access rules, one is missing: "+missingRule(r.call).String()
	}
	if text == "" {
		text = http.StatusText(answer.Actual)
	}
	return volume.Errorf(kind, "%s: %s answers HTTP %d: %s", r.object, serviceName(r), answer.Actual, text).
		Op(r.verb).Request(requestID(answer.ResponseHeader))
}

// loginError is the error of a request whose token had expired and could not be renewed. The request itself was refused.
func loginError(ctx context.Context, r request, err error) *volume.Error {
	if ctx.Err() != nil {
		return interrupted(ctx, r)
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) && answer.Actual < 500 && answer.Actual != http.StatusTooManyRequests {
		return volume.Errorf(volume.Unauthenticated, "%s: Keystone refuses to renew the login: HTTP %d: %s", r.object, answer.Actual,
			message(answer.Body)).Op(r.verb)
	}
	// Among others the canceled context of another caller, in whose name the login was renewed.
	return volume.Errorf(volume.Unavailable, "%s: cannot renew the login: %w", r.object, plain(err)).Op(r.verb)
}

// plain drops the URL that net/http puts before its errors: it says nothing that the rest of the sentence does not. What is left may
// quote the answer, so it is cleaned.
func plain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return cleaned{err}
}

// cleaned is an error whose text may hold what a cloud has answered, such as a number of a million digits.
type cleaned struct{ error }

func (c cleaned) Error() string { return cloud.Clean(c.error.Error()) }

// Unwrap gives the error itself.
func (c cleaned) Unwrap() error { return c.error }

// message takes the sentence out of an error's body: {"badRequest": {"code": 400, "message": "…"}}, under any key. Anything else,
// such as a proxy's HTML, says less than its status.
func message(body []byte) string {
	var faults map[string]json.RawMessage
	if json.Unmarshal(body, &faults) != nil {
		return ""
	}
	for _, raw := range faults {
		var fault struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &fault) == nil && fault.Message != "" {
			return cloud.Clean(fault.Message)
		}
	}
	return ""
}

func serviceName(r request) string {
	if r.call.Service == "compute" {
		return "Nova"
	}
	return "Cinder"
}
