package openstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// errorRule gives the error kind for one kind of HTTP answer.
type errorRule struct {
	status int
	verb   string // "" matches any
	text   string // part of the message in the answer; "" matches any
	kind   volume.Kind
	cause  cause.ID // "" is the usual one of the kind
}

// errorRules are the answers of Cinder and Nova, from Queens to 2026. The first rule that matches decides. A status without a rule is
// Unavailable from 500 on, such as a 504, and Unknown below (kindOf). A 400 is often about the state of the object, not about the request,
// and only the text shows which. Where that matters, the domain reads the object again. An answer of a proxy has no rule: see fromService.
var errorRules = []errorRule{
	{400, "delete volume", noKeyDelete, volume.Failed, cause.CloudKeyManager}, // the volume is in error_deleting now
	{400, "delete volume", "", volume.Conflict, cause.VolumeDependents},       // one text for all reasons: attached, has snapshots, migrating, already deleting
	{400, "attach volume", "already attached", volume.Conflict, cause.AttachElsewhere},
	{400, "attach volume", "same availability_zone", volume.Conflict, cause.AttachZone},
	{400, "attach volume", "only supported starting with", volume.Unimplemented, cause.CloudUnsupported},
	{400, "attach volume", "'multiattach' set", volume.Unimplemented, cause.CloudUnsupported},     // the hypervisor of the server cannot
	{400, "attach volume", "shelved-offloaded", volume.Conflict, cause.ServerShelved},             // a multiattach volume, until somebody unshelves the server
	{400, "attach volume", "status must be", volume.Busy, ""},                                     // creating, detaching, reserved
	{400, "detach volume", "", volume.Busy, ""},                                                   // already detaching, or still attaching
	{400, "delete snapshot", "", volume.Conflict, cause.VolumeDependents},                         // one text for all reasons: its status, or a group
	{400, "delete backup", "", volume.Conflict, cause.VolumeDependents},                           // its status, or it has incremental backups
	{400, "create snapshot", "status must be", volume.Busy, ""},                                   // the driver checked it before, so it has changed
	{400, "create snapshot", "Invalid volume", volume.Conflict, cause.SnapshotRefused},            // migrating, in maintenance, in error
	{400, "create snapshot", "frozen", volume.Conflict, cause.SnapshotRefused},                    // an administrator has frozen the storage backend
	{400, "create backup", "must be available", volume.Busy, ""},                                  // the snapshot or the parent backup; the driver checked both before
	{400, "create backup", "No backups available", volume.Busy, ""},                               // for an incremental one, though the driver saw one
	{400, "restore backup", "must be available", volume.Busy, ""},                                 // the backup or the volume; the driver checked both before
	{400, "list attachments", "", volume.Unimplemented, cause.CloudUnsupported},                   // Cinder has no filter for the volume (resource_filters.json)
	{400, "read messages", "", volume.Unimplemented, cause.CloudUnsupported},                      // the same
	{400, "create volume", noKey, volume.Unavailable, cause.CloudKeyManager},                      // an outage of the key manager, or a right that somebody can give
	{400, "create volume", "Originating", volume.Busy, cause.CreateSource},                        // the status of the source, which the driver checked before
	{400, "create volume", "vailability zone", volume.NotInZone, cause.CreateZone},                // Cinder has no such zone, the type is not in it, or the source is in another
	{400, "retype volume", "only allowed on available", volume.Conflict, cause.VolumeModifyError}, // the types differ in multiattach
	{400, "retype volume", "Retype needs volume", volume.Conflict, cause.VolumeModifyError},       // its status, or it has the type already; the domain reads it again
	{400, "retype volume", "", volume.InvalidArgument, cause.VolumeModifyError},
	{400, "add metadata", "is not allowed for", volume.Busy, ""}, // maintenance, uploading
	{400, "remove metadata", "is not allowed for", volume.Busy, ""},
	{400, "", "Specified volume size", volume.OutOfRange, ""}, // the type's provisioning:min_vol_size or max_vol_size
	{400, "extend volume", "", volume.Busy, ""},               // its status, or somebody extended it: the driver checked the size before
	{400, "", "", volume.InvalidArgument, ""},
	{401, "", "", volume.Unauthenticated, cause.CloudCredentials},          // with a fresh token it is an access rule or a clock: see answerError
	{403, "attach volume", "maximum", volume.Exhausted, cause.AttachLimit}, // Nova's TooManyDiskDevices
	{403, "", "Quota exceeded", volume.Exhausted, cause.QuotaExceeded},
	{403, "", "", volume.PermissionDenied, cause.CloudRights},
	{404, "create volume", "Volume type", volume.InvalidArgument, cause.CreateType}, // a parameter of the request, not the source
	{404, "retype volume", "Volume type", volume.InvalidArgument, cause.CreateType},
	{404, "", "", volume.NotFound, ""},
	{405, "", "", volume.Unimplemented, cause.CloudUnsupported},
	{406, "", "", volume.Unimplemented, cause.CloudUnsupported}, // the microversion
	{409, "attach volume", "in vm_state error", volume.Conflict, cause.ServerError},
	{409, "", " is locked", volume.Busy, cause.ServerLocked},
	{409, "", "Service is unavailable", volume.Busy, cause.DetachHostDown},
	{409, "", "", volume.Busy, ""}, // a task is under way on the server, it is locked, or its host is down
	{413, "", "was rate-limited", volume.Unavailable, cause.CloudRateLimited},
	{413, "", "maximum allowed limit", volume.OutOfRange, cause.QuotaVolumeSize}, // the quota per_volume_gigabytes
	{413, "", "umber of volumes", volume.Exhausted, cause.QuotaVolumes},
	{413, "", "umber of snapshots", volume.Exhausted, cause.QuotaSnapshots},
	{413, "", "umber of backups", volume.Exhausted, cause.QuotaBackups},
	{413, "", "ackup gigabytes", volume.Exhausted, cause.QuotaBackups},
	{413, "", "snapshot exceeds allowed", volume.Exhausted, cause.QuotaGigabytes},
	{413, "", "", volume.Exhausted, cause.QuotaExceeded}, // Cinder's quotas
	{429, "", "", volume.Unavailable, cause.CloudRateLimited},
	{498, "", "", volume.Unavailable, cause.CloudRateLimited}, // Swift's and some proxies' 429
	{501, "", "", volume.Unimplemented, cause.CloudUnsupported},
}

// What Cinder says if the key manager refuses the key of an encrypted volume, or does not answer.
const (
	noKey       = "Key manager error"
	noKeyDelete = "Unable to delete encryption key"
)

func kindOf(status int, verb, text string) (volume.Kind, cause.ID) {
	for _, rule := range errorRules {
		if rule.status == status && (rule.verb == "" || rule.verb == verb) && strings.Contains(text, rule.text) {
			return rule.kind, rule.cause
		}
	}
	if status >= 500 {
		return volume.Unavailable, cause.CloudUnreachable
	}
	return volume.Unknown, cause.CloudAnswer
}

// kindOfRead is the kind of a read that failed. A read has no values that its caller chose, except the ID of an object. So an answer that blames
// the request is a fault of the cloud, and must not become a final code.
func kindOfRead(k volume.Kind) volume.Kind {
	switch k {
	case volume.NotFound, volume.Unauthenticated, volume.PermissionDenied, volume.Unimplemented, volume.Busy:
		return k
	}
	return volume.Unavailable
}

// interrupted is the error of a request whose context has ended.
func interrupted(ctx context.Context, r request) *volume.Error {
	return volume.Interrupted(ctx, "%s", r.object).Op(r.verb)
}

// notSent is the error of a request whose caller left before it was sent.
func notSent(r request, left error) *volume.Error {
	return volume.Errorf(volume.KindOf(left), "%s: not sent: the caller has left: %w", r.object, left).Op(r.verb)
}

// connectCauses are the causes of cloud.Failures.
var connectCauses = map[string]cause.ID{
	cloud.FailureConnection: cause.CloudUnreachable, cloud.FailureServer: cause.CloudUnreachable, cloud.FailureTLS: cause.CloudCertificate,
	cloud.FailureCredentials: cause.CloudCredentials, cloud.FailureConfiguration: cause.CloudSettings, cloud.FailureOtherCloud: cause.CloudSettings,
}

// connectError is the error of a request that was not sent because there is no login or no endpoint.
func connectError(ctx context.Context, r request, err error) *volume.Error {
	if ctx.Err() != nil {
		return interrupted(ctx, r)
	}
	kind := volume.Unavailable // invalid settings too: a retry succeeds once somebody has corrected them
	if errors.Is(err, cloud.ErrUnauthorised) {
		kind = volume.Unauthenticated
	}
	return volume.Errorf(kind, "%s: %w", r.object, err).Cause(connectCauses[cloud.FailureOf(err)]).Op(r.verb)
}

// requestError is the error of a request that failed. A write counts as sent unless something proves that it never reached the cloud.
func requestError(ctx context.Context, r request, err error, sent *transport.Sent) *volume.Error {
	failure := failureOf(ctx, r, err)
	var answer gophercloud.ErrUnexpectedResponseCode
	switch {
	case !r.writes() || errors.As(err, new(*gophercloud.ErrUnableToReauthenticate)):
	case errors.As(err, &answer):
		// A 4xx changed nothing. After a 5xx the write may still succeed.
		failure.Sent = answer.Actual < 400 || answer.Actual >= 500
		failure.Answered = finished(answer)
	default:
		failure.Sent = !transport.NeverSent(err) && !sent.Never()
	}
	if failure.Sent {
		failure.SentAt = sent.At()
	}
	return failure
}

// finished reports whether an answer with a failure proves that no service works on the request any more. Cinder and Nova answer 500 after
// an exception, for example if their message queue is gone. Such an answer has a message or a request ID; that of a proxy has none. A 503 is from a service
// that refuses all requests, or from a proxy without a server for the request. Envoy answers 503 also when a connection breaks during
// the request. After any other status, such as 502 and 504 of a proxy, the request may still be in progress.
func finished(answer gophercloud.ErrUnexpectedResponseCode) bool {
	switch answer.Actual {
	case http.StatusInternalServerError:
		return fromService(answer)
	case http.StatusServiceUnavailable:
		return !bytes.Contains(answer.Body, []byte("upstream connect error"))
	}
	return false
}

// failureOf is requestError without what was sent.
func failureOf(ctx context.Context, r request, err error) *volume.Error {
	var answer gophercloud.ErrUnexpectedResponseCode
	var login *gophercloud.ErrUnableToReauthenticate
	switch {
	case errors.As(err, &login):
		return loginError(ctx, r, login.ErrReauth)
	case errors.As(err, &answer):
		return answerError(r, answer, said(err), errors.As(err, new(*gophercloud.ErrErrorAfterReauthentication)))
	}
	var throttled transport.ThrottledError
	switch left := volume.CallerLeft(ctx); {
	case errors.As(err, &throttled):
		return volume.Errorf(volume.Unavailable, "%s: %w", r.object, throttled).Cause(cause.CloudRateLimited).Op(r.verb)
	case ctx.Err() != nil:
		return interrupted(ctx, r)
	case left != nil && transport.NeverSent(err):
		return notSent(r, left)
	}
	return volume.Errorf(volume.Unavailable, "%s: no usable answer from %s: %w", r.object, serviceName(r), err).Cause(unanswered(err)).Op(r.verb)
}

func unanswered(err error) cause.ID {
	if cloud.FailureOf(err) == cloud.FailureTLS {
		return cause.CloudCertificate
	}
	return cause.CloudUnreachable
}

// fromService reports whether Cinder or Nova has given an answer, or the Keystone middleware inside of them. They give every answer a request ID,
// and their failures are JSON under one of faultNames. An ingress or a load balancer without a route to the service answers 404 by itself, with
// neither; a firewall answers 403. Such an answer says nothing about an object.
func fromService(answer gophercloud.ErrUnexpectedResponseCode) bool {
	name, _ := cloud.Fault(answer.Body)
	return requestID(answer.ResponseHeader) != "" || slices.Contains(faultNames, name) ||
		strings.HasPrefix(answer.ResponseHeader.Get("WWW-Authenticate"), "Keystone")
}

// faultNames are the keys of the failures of Cinder and Nova (Fault in cinder/api/middleware/fault.py and wsgi.py, Zed).
var faultNames = []string{
	"badRequest", "unauthorized", "forbidden", "itemNotFound", "badMethod", "conflictingRequest", "overLimit", "badMediaType", "notImplemented",
	"serviceUnavailable", "computeFault", "cinderFault",
}

// proxyError is the error of an answer that no service has given. It is never final.
func proxyError(r request, answer gophercloud.ErrUnexpectedResponseCode) *volume.Error {
	return volume.Errorf(volume.Unavailable, "%s: HTTP %d (%s), and the answer is not from %s: a proxy or a load balancer before it has answered. The driver retries; check the route to %s",
		r.object, answer.Actual, http.StatusText(answer.Actual), serviceName(r), serviceName(r)).Cause(cause.CloudProxy).Op(r.verb)
}

// said is the message of the service in an answer.
func said(err error) string {
	var failure *cloud.RequestError
	errors.As(err, &failure)
	return failure.Said
}

// answerError is the error of an answer with another status than that of success.
func answerError(r request, answer gophercloud.ErrUnexpectedResponseCode, text string, freshToken bool) *volume.Error {
	kind, why := kindOf(answer.Actual, r.verb, text)
	if kind != volume.Unavailable && !fromService(answer) {
		return proxyError(r, answer)
	}
	said := kind
	if !r.writes() {
		kind = kindOfRead(kind)
	}
	if r.exists && kind == volume.NotFound {
		kind = volume.Unavailable
	}
	if kind != said {
		why = cause.CloudAnswer
	}
	if answer.Actual == http.StatusUnauthorized && freshToken {
		// Keystone has just accepted the credentials. Its middleware answers 401 where the access rules of an application credential do not
		// allow the request. It gives the same answer where the clock of the service says that the token has expired.
		kind, why, text = volume.PermissionDenied, cause.CloudTokenRefused, fmt.Sprintf("it refuses a token that Keystone has just issued. Either the application credential lacks the access rule %s, "+
			"or a clock of the cloud is wrong; cinder-csi-generator doctor says which", missingRule(r.call))
	}
	if text == "" {
		text = http.StatusText(answer.Actual)
	}
	return volume.Errorf(kind, "%s: %s answers HTTP %d: %s%s", r.object, serviceName(r), answer.Actual, text, advice(r, answer.Actual, text)).
		Cause(why).Op(r.verb).Request(requestID(answer.ResponseHeader)).Because(httpStatus(answer.Actual))
}

// advice says what the words of an answer mean, and what to do.
func advice(r request, status int, text string) string {
	switch {
	case r.call == detachVolume && status == http.StatusConflict && strings.Contains(text, "Service is unavailable"):
		return " This means that nova-compute is down on the host of the server. Start it; if the host is lost, evacuate or delete the server"
	case r.verb == "create volume" && strings.Contains(text, noKey):
		return ". Cinder asks the key manager (Barbican) for the key of an encrypted volume, with the token of the driver. " +
			"Either the credential lacks the role that may create keys, mostly \"creator\", or the key manager is down"
	case r.verb == "delete volume" && strings.Contains(text, noKeyDelete):
		return " Cinder deletes the key in the key manager (Barbican) with the token of the driver. Either the credential lacks the role for keys, mostly \"creator\", " +
			"or the key manager is down. The volume is now in status error_deleting, which an administrator of the cloud must reset before the next delete"
	}
	return ""
}

// httpStatus is the status of an answer, for errors.As.
type httpStatus int

func (s httpStatus) Error() string { return fmt.Sprintf("HTTP %d", int(s)) }

// loginError is the error of a request whose token had expired, when the driver could not get a new one. The cloud refused the request.
func loginError(ctx context.Context, r request, err error) *volume.Error {
	if ctx.Err() != nil {
		return interrupted(ctx, r)
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	if expired := (*cloud.ExpiredError)(nil); errors.As(err, &expired) {
		return volume.Errorf(volume.Unauthenticated, "%s: Keystone refused a new token: the credential expired at %s; put a new one into the Secret ("+pages.RotateCredentials.String()+")",
			r.object, expired.At.UTC().Format(time.RFC3339)).Cause(cause.CloudCredentials).Op(r.verb)
	}
	if errors.As(err, &answer) && answer.Actual < 500 && answer.Actual != http.StatusTooManyRequests {
		return volume.Errorf(volume.Unauthenticated, "%s: Keystone refused a new token: %w", r.object, err).Cause(cause.CloudCredentials).Op(r.verb)
	}
	// One cause is a canceled context of another caller, who also waited for the new token.
	return volume.Errorf(volume.Unavailable, "%s: cannot get a new token: %w", r.object, err).Cause(unanswered(err)).Op(r.verb)
}

func serviceName(r request) string {
	if r.call.Service == "compute" {
		return "Nova"
	}
	return "Cinder"
}
