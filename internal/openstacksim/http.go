package openstacksim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// service is one of the simulated services; its value is the first segment of its URLs.
type service string

const (
	identity service = "identity"
	compute  service = "compute"
	blocks   service = "volume"
	metadata service = "metadata"
)

type call struct {
	*http.Request
	service service
	path    string // without the segment of the service: /v3/PROJECT/volumes
	id      string // request id
	body    []byte
	params  []param
	version int    // minor microversion
	echo    string // OpenStack-API-Version of the reply: "volume 3.70"
	token   *token
	// pageSize is the longest list in the reply.
	pageSize int
	vars     map[string]string // {name} segments of the route
	// beforeZed says that Cinder is of an older release than Zed.
	beforeZed bool
	begun     time.Time // when it arrived
}

type param struct{ key, value string }

// reply is a response. If later is set, it returns the real response once that is known.
type reply struct {
	status int
	body   any // nil: no content; text: as it is; else JSON
	header http.Header
	later  <-chan reply
	rows   int  // objects in a list
	proxy  bool // it is not from the service
}

// text is a body that is not JSON.
type text struct{ kind, content string }

// maxBody is larger than any real request body.
const maxBody = 1 << 20

// Handler serves the whole cloud: /identity, /compute, /volume and /metadata. URLs in replies have the Host of the request.
func (s *Sim) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Sim) serve(w http.ResponseWriter, r *http.Request) {
	c := newCall(r)
	c.beforeZed = s.volumeMinor() < NewestVolumeMinor
	c.begun = time.Now()
	status := 0
	defer func() { s.record(c, status) }()

	s.mu.Lock()
	c.id, c.pageSize = "req-"+s.newID(), cmp.Or(s.config.PageSize, maxLimit)
	fault := s.httpFault(c)
	delay := s.takes(Answer, c.Method+c.path) + fault.Delay
	row := s.timing.Row
	if fault.Late > 0 {
		s.after(delay+fault.Late, func() { s.route(c) })
	}
	s.mu.Unlock()
	if !wait(r, delay) || fault.Drop && !fault.After {
		panic(http.ErrAbortHandler)
	}
	var answer reply
	if fault.Status == 0 || fault.After {
		answer = s.answer(c)
		if answer.later != nil {
			select {
			case answer = <-answer.later:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler) // the client left; the cloud continues
			}
		}
	}
	if !wait(r, time.Duration(answer.rows)*row) || fault.Drop {
		panic(http.ErrAbortHandler)
	}
	if fault.Status != 0 {
		answer = s.faultReply(c, fault).encoded()
	}
	status = answer.status
	c.write(w, answer)
}

func newCall(r *http.Request) *call {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	c := &call{Request: r, service: service(first), path: "/" + rest}
	if rest == "" && !strings.HasSuffix(r.URL.Path, "/") {
		c.path = ""
	}
	c.body, _ = io.ReadAll(io.LimitReader(r.Body, maxBody))
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if part == "" {
			continue
		}
		k, v, _ := strings.Cut(part, "=")
		k, errK := url.QueryUnescape(k)
		v, errV := url.QueryUnescape(v)
		if errK == nil && errV == nil {
			c.params = append(c.params, param{k, v})
		}
	}
	return c
}

// wait waits for d. It returns false if the client left first.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (s *Sim) answer(c *call) reply {
	defer s.lock()()
	s.applyDue()
	if c.Method != http.MethodGet {
		s.remember()
	}
	live := s.records
	s.records = s.shown(c)
	r := s.route(c).encoded()
	if c.Method == http.MethodGet {
		s.records = live
	}
	return r
}

// encoded writes the JSON of the body now, while s.mu protects the objects in it.
func (r reply) encoded() reply {
	switch r.body.(type) {
	case nil, text:
	default:
		r.body = json.RawMessage(encode(r.body))
	}
	return r
}

func (s *Sim) route(c *call) reply {
	switch c.service {
	case identity:
		return s.serveIdentity(c)
	case compute:
		return s.serveCompute(c)
	case blocks:
		return s.serveVolume(c)
	case metadata:
		return s.serveMetadata(c)
	default:
		return reply{status: http.StatusNotFound, body: text{"text/plain; charset=utf-8", "openstack-sim serves /identity, /compute, /volume and /metadata\n"}}
	}
}

func (c *call) write(w http.ResponseWriter, r reply) {
	h := w.Header()
	var content []byte
	switch body := r.body.(type) {
	case nil:
	case text:
		h.Set("Content-Type", body.kind)
		content = []byte(body.content)
	case json.RawMessage:
		h.Set("Content-Type", "application/json")
		content = body
	}
	if !r.proxy {
		c.serviceHeader(h, r)
	}
	for k, v := range r.header {
		h[http.CanonicalHeaderKey(k)] = v // nil: not sent
	}
	if r.status == http.StatusNoContent {
		h.Del("Content-Type")
	}
	if r.status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(content)))
	}
	w.WriteHeader(r.status)
	if c.Method != http.MethodHead {
		w.Write(content)
	}
}

// serviceHeader sets the headers that each service adds to every reply.
func (c *call) serviceHeader(h http.Header, r reply) {
	if c.service == metadata {
		return
	}
	h.Set("X-Openstack-Request-Id", c.id)
	_, isText := r.body.(text)
	if c.echo != "" {
		h.Set("Openstack-Api-Version", c.echo)
		h.Set("Vary", "OpenStack-API-Version")
	}
	switch c.service {
	case identity:
		h.Set("Vary", "X-Auth-Token")
	case blocks:
		if r.body != nil && !isText && r.status != http.StatusUnauthorized {
			h.Set("X-Compute-Request-Id", c.id)
		}
		if r.body == nil && r.status < http.StatusMultipleChoices {
			h.Set("Content-Type", "text/html; charset=UTF-8")
		}
	case compute:
		if c.echo != "" {
			h.Set("X-Openstack-Nova-Api-Version", strings.TrimPrefix(c.echo, "compute "))
			h.Add("Vary", "X-OpenStack-Nova-API-Version")
		}
		h.Set("X-Compute-Request-Id", c.id)
		if r.status >= http.StatusBadRequest && r.status != http.StatusUnauthorized {
			h.Set("Content-Type", "application/json; charset=UTF-8")
		} else if r.body == nil {
			h.Set("Content-Type", "application/json")
		}
	}
}

// base is the URL of a service at the host that the client used.
func (c *call) base(s service) string {
	scheme := "http"
	if c.TLS != nil || c.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + c.Host + "/" + string(s)
}

// param is the last value of a query parameter; ok reports whether the query has it.
func (c *call) param(key string) (value string, ok bool) {
	for _, p := range c.params {
		if p.key == key {
			value, ok = p.value, true
		}
	}
	return value, ok
}

// decode reads a JSON object from the body.
func (c *call) decode() map[string]any {
	body, refusal := c.parse()
	if refusal != nil {
		panic(*refusal)
	}
	return body
}

// parse is decode for a service that has its own words for a body that is none.
func (c *call) parse() (map[string]any, *reply) {
	kind := c.Header.Get("Content-Type")
	if c.service == blocks && len(c.body) == 0 {
		return nil, new(fault(http.StatusInternalServerError, serverError)) // the schema check of Cinder fails on an empty body
	}
	if (kind != "" || c.service == blocks) && !strings.HasPrefix(kind, "application/json") {
		return nil, new(fault(http.StatusUnsupportedMediaType, "Unsupported Content-Type"))
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		return nil, new(fault(http.StatusBadRequest, "Malformed request body"))
	}
	object, ok := body.(map[string]any)
	if !ok {
		return nil, new(fault(http.StatusBadRequest, python(body)+" is not of type 'object'"))
	}
	return object, nil
}

// raw is a part of the body as the client sent it, with its keys in order.
func (c *call) raw(path ...string) json.RawMessage {
	part := json.RawMessage(c.body)
	for _, key := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(part, &object) != nil {
			return nil
		}
		part = object[key]
	}
	return part
}

// faultNames are the keys of error bodies of Cinder and Nova, by status. For any other status, both use computeFault.
var faultNames = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusMethodNotAllowed: "badMethod", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusUnsupportedMediaType: "badMediaType",
	http.StatusNotImplemented: "notImplemented", http.StatusServiceUnavailable: "serviceUnavailable",
	http.StatusTooManyRequests: "overLimit",
}

// fault is an error as Cinder and Nova send it.
func fault(status int, message string) reply {
	name := cmp.Or(faultNames[status], "computeFault")
	body, r := obj{{"code", status}, {"message", message}}, reply{status: status}
	if status == http.StatusRequestEntityTooLarge {
		body = append(body, pair{"retryAfter", "0"})
		r.header = http.Header{"Retry-After": {"0"}}
	}
	r.body = obj{{name, body}}
	return r
}

// accepted is a reply without content. It has the headers of a reply with content.
func (c *call) accepted(status int) reply {
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}, "X-Compute-Request-Id": {c.id}}}
}

// The messages of both services if they have no specific one.
const (
	badRequestMessage = "The server could not comply with the request since it is either malformed or otherwise incorrect."
	notFoundMessage   = "The resource could not be found."
	serverError       = "The server has either erred or is incapable of performing the requested operation."
)

// noRoute is the reply to a path that no controller serves.
func noRoute() reply {
	return reply{status: http.StatusNotFound, header: http.Header{"Content-Type": {"application/json"}, "X-Compute-Request-Id": nil}, body: obj{
		{"message", "The resource could not be found.<br /><br />\n\n\n"}, {"code", "404 Not Found"}, {"title", "Not Found"},
	}}
}

// noPage is the reply of webob to a path outside of every API version.
func noPage() reply {
	return reply{status: http.StatusNotFound, body: text{"text/html; charset=UTF-8", `<html>
 <head>
  <title>404 Not Found</title>
 </head>
 <body>
  <h1>404 Not Found</h1>
  The resource could not be found.<br /><br />



 </body>
</html>`}}
}

func forbidden(policy string) reply {
	return fault(http.StatusForbidden, "Policy doesn't allow "+policy+" to be performed.")
}

func (c *call) adminOnly(policy string) {
	if !c.token.admin() {
		panic(forbidden(policy))
	}
}
