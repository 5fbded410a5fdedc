// Package openstack is the adapter between the domain (package volume) and Cinder and Nova. It sends only the requests in Calls, and
// translates the answers into the domain's types and error kinds. It does not wait for changes and decides nothing.
//
// Each request asks for the lowest microversion that it needs. Old clouds then work, and new ones behave the same.
//
// In memory it keeps for an hour which filters the cloud refused (filter.go). For ten seconds it keeps that the cloud answers no requests for
// messages (messages.go). That only saves calls. Packages status and transport document
// their own memory.
package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Cloud is one OpenStack cloud. It implements volume.Cloud, and all its errors are *volume.Error.
type Cloud struct {
	current    cloud.Current
	log        *slog.Logger
	filters    filters
	noMessages atomic.Pointer[noMessages] // the last one
}

var _ volume.Cloud = (*Cloud)(nil)

// NewCurrent returns the adapter of the cloud that is configured at the time of each request.
func NewCurrent(current cloud.Current, log *slog.Logger) *Cloud {
	return &Cloud{current: current, log: log}
}

// How long one request may take; the caller's deadline may end it sooner. Cinder answers a read from its database. Nova answers an attach
// after the compute host has reserved a device, and waits a minute for that itself.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 2 * time.Minute
)

type request struct {
	call   cloud.Call
	verb   string   // for errors: "delete volume"
	object string   // for errors: "volume 1b4e…"
	ids    []string // the values of the variables in the path, in order; each is a UUID
	key    string   // the value of {key} in the path, any text
	query  url.Values
	body   any
	into   any // receives the decoded answer
	ok     int // the status of success
	// exists says that every cloud has what this reads. A 404 is then a fault of the cloud, such as a route of a proxy.
	exists bool
}

func (r request) writes() bool { return r.call.Method != http.MethodGet }

func (r request) timeout() time.Duration {
	if r.writes() {
		return writeTimeout
	}
	return readTimeout
}

var variable = regexp.MustCompile(`\{[a-z]+\}`)

// path fills in the variables of the call's path. {project} is the project of the token.
func (r request) path(project string) string {
	ids := r.ids
	path := variable.ReplaceAllStringFunc(r.call.Path, func(variable string) string {
		if variable == "{project}" {
			return url.PathEscape(project)
		}
		if variable == "{key}" {
			return url.PathEscape(r.key)
		}
		id := ids[0]
		ids = ids[1:]
		return id
	})
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return strings.TrimPrefix(path, "/")
}

func (c *Cloud) do(ctx context.Context, r request) error {
	for _, id := range r.ids {
		if !contract.IsUUID(id) {
			return volume.Errorf(volume.NotFound, "%s does not exist: %q is not a UUID", r.object, id).Op(r.verb)
		}
	}
	if ctx.Err() != nil {
		return interrupted(ctx, r)
	}
	now, err := c.current(ctx)
	if err != nil {
		return connectError(ctx, r, err)
	}
	err = c.send(ctx, now, r)
	if mayHaveMoved(err) && !volume.MayHaveWritten(err) {
		if next, moved := now.Relocated(ctx); moved {
			return c.send(ctx, next, r)
		}
	}
	if volume.Is(err, volume.Unauthenticated) { // the cloud did nothing; somebody may just have replaced the credentials
		if next, replaced := now.Successor(ctx); replaced {
			return c.send(ctx, next, r)
		}
	}
	return err
}

// mayHaveMoved reports whether a failure may mean that the service has another address now: it did not answer, or a proxy answered in its place.
func mayHaveMoved(err error) bool {
	var failure *volume.Error
	var status httpStatus
	return volume.Is(err, volume.Unavailable) && errors.As(err, &failure) && failure.RequestID == "" && !errors.As(err, new(transport.ThrottledError)) && !errors.Is(err, cloud.ErrTooLarge) &&
		(!errors.As(err, &status) || status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout)
}

// send sends a request with the token of one login.
func (c *Cloud) send(ctx context.Context, login *cloud.Cloud, r request) error {
	client, err := login.ClientContext(ctx, r.call.Service, r.call.Microversion)
	if err != nil {
		return connectError(ctx, r, err)
	}
	if left := volume.CallerLeft(ctx); left != nil { // the login took too long
		return notSent(r, left)
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	defer volume.BeginStep(ctx, "waiting for the answer of "+serviceName(r)+" to: "+r.verb+", "+r.object)()
	var sent transport.Sent
	limited = sent.Watch(limited)
	options := &gophercloud.RequestOpts{JSONBody: r.body, KeepResponseBody: r.into != nil, OkCodes: []int{r.ok}}
	resp, err := login.Send(limited, client, r.call.Method, client.ServiceURL(r.path(login.ProjectID())), options)
	if err == nil && r.into != nil {
		err = cloud.Decode(resp, r.into)
		_ = resp.Body.Close()
	}
	if err != nil {
		failure := requestError(ctx, r, err, &sent)
		if r.writes() {
			volume.NoteRequest(ctx, failure.RequestID)
		}
		return failure
	}
	if r.writes() {
		volume.NoteRequest(ctx, requestID(resp.Header))
		c.log.DebugContext(ctx, r.verb, "object", r.object, "status", resp.StatusCode, "request", requestID(resp.Header))
	}
	return nil
}

// wireID is the id of an object in JSON.
type wireID struct {
	ID string `json:"id"`
}

func (w wireID) id() string { return w.ID }

// keyed is an answer that holds one object, or a list without pages, under a key. It has the limits of one object. Value is exported, because package cloud cleans the strings of no other field.
type keyed[W any] struct {
	key   string
	Value W
}

func (k *keyed[W]) UnmarshalJSON(data []byte) error {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(data, &answer); err != nil || answer[k.key] == nil {
		return err
	}
	return cloud.UnmarshalObject(answer[k.key], &k.Value)
}

// object sends a request whose answer holds one object under a key, and checks the id of that object. An empty want accepts any UUID, as
// that of a new object. Another object's state would let the driver act on an object that no request names.
func object[T any, W interface{ id() string }](ctx context.Context, c *Cloud, r request, key, want string, domain func(W) T) (found T, err error) {
	answer := keyed[W]{key: key}
	r.into = &answer
	if err := c.do(ctx, r); err != nil {
		return found, err
	}
	id := answer.Value.id()
	if contract.IsUUID(id) && (want == "" || strings.EqualFold(id, want)) {
		return domain(answer.Value), nil
	}
	failure := volume.Errorf(volume.Unavailable, "%s: %s answered with another object, whose id is %.64q; the driver ignores the answer, and a retry asks again",
		r.object, serviceName(r), id).Cause(cause.CloudAnswer).Op(r.verb)
	if r.writes() {
		failure = failure.AfterWrite()
	}
	return found, failure
}

// read reads one object by its id. The noun is also the key of the object in the answer.
func read[T any, W interface{ id() string }](ctx context.Context, c *Cloud, call cloud.Call, noun, id string, domain func(W) T) (T, error) {
	return object(ctx, c, request{call: call, verb: "read " + noun, object: noun + " " + id, ids: []string{id}, ok: http.StatusOK}, noun, id, domain)
}

// maxRequestID is how many bytes of a request id the driver keeps. OpenStack's have 40, but the header may hold anything.
const maxRequestID = 64

func requestID(h http.Header) string {
	id := cmp.Or(h.Get("X-Openstack-Request-Id"), h.Get("X-Compute-Request-Id"))
	return cloud.Public(id[:min(len(id), maxRequestID)])
}
