// Package openstack is the driver's side of Cinder and Nova: it sends exactly the requests that Calls lists and says what the
// answers mean in the domain's words. It waits for nothing, decides nothing and remembers nothing; that is the domain's.
//
// Requests ask for the lowest microversion that has what is needed, so that old clouds work and new ones behave the same.
package openstack

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Cloud is one OpenStack cloud, as the domain wants it.
type Cloud struct {
	current cloud.Current
	log     *slog.Logger
}

var _ volume.Cloud = (*Cloud)(nil)

// New makes the adapter of a cloud that somebody is logged in to.
func New(c *cloud.Cloud, log *slog.Logger) *Cloud { return NewCurrent(cloud.Fixed(c), log) }

// NewCurrent makes the adapter of whatever cloud is configured when a request is made.
func NewCurrent(current cloud.Current, log *slog.Logger) *Cloud {
	return &Cloud{current: current, log: log}
}

// How long one request may take, apart from the caller's deadline. Reads are answered from a database. Nova answers an attach
// only once the compute host has reserved a device, for which it waits a minute itself.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 2 * time.Minute
)

// request is one request to be made.
type request struct {
	call   cloud.Call
	verb   string   // for errors: "delete volume"
	object string   // for errors: "volume 1b4e…"
	ids    []string // fill the call's variables, in order; each is a UUID
	query  url.Values
	body   any
	into   any // what the answer is decoded into
	ok     int
}

func (r request) writes() bool { return r.call.Method != http.MethodGet }

func (r request) timeout() time.Duration {
	if r.writes() {
		return writeTimeout
	}
	return readTimeout
}

var variable = regexp.MustCompile(`\{[a-z]+\}`)

// path fills the call's template; {project} is the project that the cloud's token is for.
func (r request) path(project string) string {
	ids := r.ids
	path := variable.ReplaceAllStringFunc(r.call.Path, func(variable string) string {
		if variable == "{project}" {
			return url.PathEscape(project)
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

// do makes a request and decodes its answer. Its errors are *volume.Error.
func (c *Cloud) do(ctx context.Context, r request) error {
	for _, id := range r.ids {
		if !isUUID(id) {
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
	if volume.Is(err, volume.Unauthenticated) { // nothing was done; the credentials may have been replaced a moment ago
		if next, replaced := now.Successor(ctx); replaced {
			return c.send(ctx, next, r)
		}
	}
	return err
}

// send makes a request as somebody who is logged in.
func (c *Cloud) send(ctx context.Context, now *cloud.Cloud, r request) error {
	client, err := now.ClientContext(ctx, r.call.Service, r.call.Microversion)
	if err != nil {
		return connectError(ctx, r, err)
	}
	if by, bounded := volume.StartBy(ctx); bounded && !time.Now().Before(by) { // the login took too long
		return volume.Errorf(volume.DeadlineExceeded, "%s: not sent: the caller's deadline has passed", r.object).Op(r.verb)
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	var sent transport.Sent
	limited = sent.Watch(limited)
	options := &gophercloud.RequestOpts{JSONBody: r.body, KeepResponseBody: r.into != nil, OkCodes: []int{r.ok}}
	resp, err := client.Request(limited, r.call.Method, client.ServiceURL(r.path(now.ProjectID())), options)
	if err == nil && r.into != nil {
		err = cloud.Decode(resp.Body, r.into)
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

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuid.MatchString(s) }

// longestRequestID is how many bytes of a request's id are kept: OpenStack's have 40, and a header may hold anything.
const longestRequestID = 64

func requestID(h http.Header) string {
	id := h.Get("X-Openstack-Request-Id")
	if id == "" {
		id = h.Get("X-Compute-Request-Id")
	}
	return cloud.Clean(id[:min(len(id), longestRequestID)])
}

// unusable is the error of an answer that is not about the object it should be about: a zero value or another object's state, taken
// for this one's, would let the driver act on what nobody asked for.
func unusable(r request, got string) error {
	failure := volume.Errorf(volume.Unavailable, "%s: the answer of %s has the id %.64q, which is not the one it should have; the driver does not use it, and a retry asks again",
		r.object, serviceName(r), got).Op(r.verb)
	if r.writes() {
		failure = failure.AfterWrite()
	}
	return failure
}

// about makes a request about one object and checks that the answer is about it: into holds the answer's id afterwards. Without a
// wanted id any UUID will do, as that of a new object.
func (c *Cloud) about(ctx context.Context, r request, id *string, want string) error {
	if err := c.do(ctx, r); err != nil {
		return err
	}
	if !isUUID(*id) || want != "" && !strings.EqualFold(*id, want) {
		return unusable(r, *id)
	}
	return nil
}
