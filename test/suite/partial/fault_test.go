package partial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

type cloudTime = time.Duration

const (
	second = time.Second
	minute = time.Minute
)

// fault is what happens to every request of one kind.
type fault struct {
	name   string
	after  cloudTime
	status int    // 0: the cloud's own answer, changed by page
	body   string // of the answer with status; empty means an OpenStack error body
	header http.Header
	page   func(k kind, body []byte) []byte // changes the page of a listing
	slow   bool                             // the answer takes ten times as long
	lag    cloudTime                        // of every read, whatever its kind: it shows what was there before
}

// The body of HAProxy and of nginx without a backend. It has no request ID: the request has not reached Cinder.
const proxyPage = "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n"

const gatewayPage = "<html><body><h1>504 Gateway Time-out</h1>\nThe server didn't respond in time.\n</body></html>\n"

// The text of Cinder since 3.31 for a filter that resource_filters.json does not name (cinder/api/common.py, reject_invalid_filters).
const unknownFilter = "Invalid filters %s are found in query options."

var faults = []fault{
	{name: "504 after 3 s", after: 3 * second, status: http.StatusGatewayTimeout, body: gatewayPage},
	{name: "504 after 60 s", after: minute, status: http.StatusGatewayTimeout, body: gatewayPage},
	{name: "500", status: http.StatusInternalServerError},
	{name: "503", status: http.StatusServiceUnavailable, body: proxyPage},
	{name: "400 unknown filter", status: http.StatusBadRequest, body: unknownFilter},
	{name: "403", status: http.StatusForbidden},
	{name: "404", status: http.StatusNotFound},
	{name: "409", status: http.StatusConflict},
	{name: "413", status: http.StatusRequestEntityTooLarge},
	{name: "429", status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"1"}}},
	{name: "empty page", page: emptyPage},
	{name: "truncated page", page: truncatedPage},
	{name: "page without end", page: endlessPage},
	{name: "ten times slower", slow: true},
}

// applies says whether the fault can happen to a kind.
func (f fault) applies(k kind) bool {
	switch {
	case f.body == unknownFilter:
		return k.lists() && k.Filters != ""
	case f.name == "page without end":
		return k.pages()
	case f.page != nil:
		return k.lists()
	}
	return true
}

// tellsOfTheObject says whether the answer is about the object or about the rights of the credential, which is no fault of the cloud.
func (f fault) tellsOfTheObject(k kind) bool {
	switch f.status {
	case http.StatusForbidden:
		return true
	case http.StatusNotFound, http.StatusConflict:
		return k.names() || k.writes()
	case http.StatusRequestEntityTooLarge:
		return k.writes()
	}
	return false
}

// costs is the time that one request of the kind takes with the fault, as far as the driver waits for it. After a pause that the cloud asked
// for, the driver sends at most 50 requests a second.
func (f fault) costs(k kind, inFlight int) cloudTime {
	pause := cloudTime(0)
	if f.header != nil {
		pause = second + cloudTime(inFlight)*second/50
	}
	return min(f.after, k.timeout()) + pause
}

// breaker answers the requests of one kind with a fault, and counts all requests.
type breaker struct {
	next http.RoundTripper

	mu      sync.Mutex
	broken  kind
	fault   *fault
	seen    map[kind]int
	unknown []string
	all     int
	hits    int
}

func (b *breaker) breaks(k kind, f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken, b.fault = k, &f
}

// begin forgets the requests so far.
func (b *breaker) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen, b.unknown, b.all, b.hits = map[kind]int{}, nil, 0, 0
}

// counts returns the numbers of requests, of those that the fault met, and of those of each kind, since begin.
func (b *breaker) counts() (all, hits int, seen map[kind]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all, b.hits, maps.Clone(b.seen)
}

// note counts a request and returns its fault, if it has one.
func (b *breaker) note(r *http.Request, body []byte) (kind, *fault) {
	if strings.HasPrefix(r.URL.Path, "/identity") || strings.HasPrefix(r.URL.Path, "/metadata") || r.URL.Path == "/compute/v2.1/" { // package cloud sends those
		return kind{}, nil
	}
	k, known := kindOf(r, body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all++
	if !known {
		b.unknown = append(b.unknown, r.Method+" "+r.URL.Path+" "+r.Header.Get("OpenStack-API-Version"))
		return k, nil
	}
	if b.seen == nil {
		b.seen = map[kind]int{}
	}
	b.seen[k]++
	if b.fault == nil || k != b.broken {
		return k, nil
	}
	b.hits++
	return k, b.fault
}

// RoundTrip implements http.RoundTripper.
func (b *breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	k, f := b.note(r, body)
	if f == nil {
		return b.next.RoundTrip(r)
	}
	return b.fail(r, k, *f)
}

// fail answers a request with a fault.
func (b *breaker) fail(r *http.Request, k kind, f fault) (*http.Response, error) {
	if err := pass(r.Context(), f.after); err != nil {
		return nil, err
	}
	if f.status != 0 {
		return f.answer(r, k), nil
	}
	if f.name == "page without end" {
		r.URL = withoutMarker(r.URL)
	}
	begun := time.Now()
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if f.slow {
		if err := pass(r.Context(), 9*time.Since(begun)); err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		return resp, nil
	}
	return f.changed(k, resp)
}

func pass(ctx context.Context, d cloudTime) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f fault) answer(r *http.Request, k kind) *http.Response {
	text, header := f.body, http.Header{"Content-Type": {"text/html"}}
	if text == "" || text == unknownFilter {
		sentence := http.StatusText(f.status)
		if text == unknownFilter {
			sentence = fmt.Sprintf(unknownFilter, k.Filters)
		}
		text = fmt.Sprintf(`{"fault":{"code":%d,"message":%q}}`, f.status, sentence)
		header = http.Header{"Content-Type": {"application/json"}, "X-Openstack-Request-Id": {"req-00000000-0000-4000-8000-000000000000"}}
	}
	for name, values := range f.header {
		header[name] = values
	}
	return &http.Response{
		StatusCode: f.status, Status: fmt.Sprintf("%d %s", f.status, http.StatusText(f.status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}

func (f fault) changed(k kind, resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		body = f.page(k, body)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// collection is the name of the one list in a page.
func collection(page map[string]json.RawMessage) string {
	for name, value := range page {
		if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) && !strings.HasSuffix(name, "_links") {
			return name
		}
	}
	return ""
}

func emptyPage(_ kind, body []byte) []byte {
	var page map[string]json.RawMessage
	if json.Unmarshal(body, &page) != nil {
		return body
	}
	return fmt.Appendf(nil, `{%q:[]}`, collection(page))
}

func truncatedPage(_ kind, body []byte) []byte { return body[:len(body)/2] }

// withoutMarker makes every page the first one.
func withoutMarker(u *url.URL) *url.URL {
	first, query := *u, u.Query()
	query.Del("marker")
	first.RawQuery = query.Encode()
	return &first
}

// endlessPage says that another page follows.
func endlessPage(_ kind, body []byte) []byte {
	var page map[string]json.RawMessage
	if json.Unmarshal(body, &page) != nil {
		return body
	}
	name := collection(page)
	page[name+"_links"] = json.RawMessage(`[{"rel":"next","href":"http://cloud.test/next"}]`)
	changed, err := json.Marshal(page)
	if err != nil {
		return body
	}
	return changed
}
