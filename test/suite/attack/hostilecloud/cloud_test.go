package hostilecloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/endless"
)

const (
	cloudURL = "http://cloud.test" // the address of the hostile cloud
	otherURL = "https://other.test"
)

// hostile is a cloud that becomes hostile once it is armed: it does what each request asks, and answers as an attack says. As a transport
// it also is every other host, and records the requests to them.
type hostile struct {
	sim   *openstacksim.Sim
	serve http.RoundTripper

	mu        sync.Mutex
	attack    attack // nil until armed
	served    int
	elsewhere []string // requests to other hosts, with the secrets that they carry
}

// attack returns the answer to a request. It gets the honest answer.
type attack func(r *http.Request, honest *answered) *answered

// answered is an answer. A body without end is a stream, others are bytes.
type answered struct {
	status int
	header http.Header
	body   []byte
	stream func(r *http.Request) io.Reader
}

func newHostile() *hostile {
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(50 * time.Millisecond)
	return &hostile{sim: sim, serve: memnet.Transport(sim.Handler())}
}

func (h *hostile) arm(a attack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attack, h.served = a, 0
}

// requests is how many requests the cloud has received since it was armed.
func (h *hostile) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.served
}

// RoundTrip implements http.RoundTripper.
func (h *hostile) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "cloud.test" || r.URL.Scheme != "http" {
		h.mu.Lock()
		h.elsewhere = append(h.elsewhere, secretsIn(r))
		h.mu.Unlock()
		return (&answered{status: http.StatusOK, body: []byte(`{}`)}).response(r), nil
	}
	a, err := h.answer(r)
	if err != nil {
		return nil, err
	}
	return a.response(r), nil
}

// answer gets the answer of the simulation and lets the attack change it.
func (h *hostile) answer(r *http.Request) (*answered, error) {
	h.mu.Lock()
	h.served++
	attack := h.attack
	h.mu.Unlock()
	resp, err := h.serve.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	honest := &answered{status: resp.StatusCode, header: resp.Header.Clone(), body: body}
	if attack == nil {
		return honest, nil
	}
	return attack(r, honest), nil
}

func (a *answered) response(r *http.Request) *http.Response {
	var body io.Reader = bytes.NewReader(a.body)
	if a.stream != nil {
		body = a.stream(r)
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	header.Del("Content-Length")
	return &http.Response{StatusCode: a.status, Status: fmt.Sprint(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: io.NopCloser(body), ContentLength: -1, Request: r}
}

// secretsIn describes a request and the secrets in it that must not leave the cloud's own hosts.
func secretsIn(r *http.Request) string {
	text := r.Method + " " + r.URL.String()
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		text += " with a token"
	}
	if r.Body != nil {
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("secret")) || bytes.Contains(body, []byte("password")) {
			text += " with a password"
		}
	}
	return text
}

func isLogin(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/auth/tokens") }

// collections are the lists that have pages: the end of the path, the key of the list and that of its links.
var collections = map[string][2]string{
	"/volumes/detail": {"volumes", "volumes_links"}, "/snapshots/detail": {"snapshots", "snapshots_links"}, "/backups/detail": {"backups", "backups_links"},
	"/types": {"volume_types", "volume_type_links"}, "/group_types": {"group_types", "group_type_links"},
}

func collectionOf(r *http.Request) (keys [2]string, is bool) {
	for path, keys := range collections {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, path) {
			return keys, true
		}
	}
	return keys, false
}

// freshID is an ID that no object has.
func freshID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", rand.Uint32(), rand.Uint64()>>16)
}

// rewrite changes every value of a JSON text that is neither a list nor an object. change returns the new value.
func rewrite(body []byte, change func(key string, value any) any) []byte {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var document any
	if decoder.Decode(&document) != nil {
		return body
	}
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			changed := map[string]any{}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				changed[k] = walk(k, v[k])
			}
			return changed
		case []any:
			for i := range v {
				v[i] = walk(key, v[i])
			}
			return v
		}
		return change(key, v)
	}
	text, err := json.Marshal(walk("", document))
	if err != nil {
		panic(err)
	}
	return text
}

// after changes an attack so that it answers logins honestly: it attacks only clients that have logged in.
func after(a attack) attack {
	return func(r *http.Request, honest *answered) *answered {
		if isLogin(r) {
			return honest
		}
		return a(r, honest)
	}
}

func replaced(change func(key string, value any) any) attack {
	return after(func(_ *http.Request, honest *answered) *answered {
		honest.body = rewrite(honest.body, change)
		return honest
	})
}

// repeating is a stream of one text.
type repeating struct {
	text string
	at   int
}

func (s *repeating) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], s.text[s.at:])
		n, s.at = n+copied, (s.at+copied)%len(s.text)
	}
	return n, nil
}

// huge is the size of a body that does not end before the reader gives up: twice what internal/cloud reads of one.
const huge = 2 * 8 << 20

// body streams a start and then something huge.
func body(status int, begin, repeat string) attack {
	return after(func(_ *http.Request, honest *answered) *answered {
		if status != 0 {
			honest.status = status
		}
		honest.stream = func(*http.Request) io.Reader {
			return io.MultiReader(strings.NewReader(begin), io.LimitReader(&repeating{text: strings.Repeat(repeat, 4<<10)}, huge))
		}
		return honest
	})
}

// drip sends one byte a second until its request ends.
type drip struct{ r *http.Request }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	case <-d.r.Context().Done():
		return 0, d.r.Context().Err()
	}
}

// nasty is text that a terminal, a log reader or a browser would interpret: escapes, a forged line, bidirectional text, markup.
const nasty = "\x1b[2J\x1b]0;owned\x07\u009b31m\r\nlevel=ERROR msg=forged\x00\u202e\u2028<script>"

func redirect(status int, to string) attack {
	return after(func(r *http.Request, honest *answered) *answered {
		honest.status, honest.body = status, nil
		honest.header.Set("Location", to+r.URL.Path)
		return honest
	})
}

// attacks are the attacks of a hostile cloud on clients that have logged in.
var attacks = map[string]attack{
	"new pages without end": after(func(r *http.Request, honest *answered) *answered {
		if keys, is := collectionOf(r); is {
			id := freshID()
			honest.status = http.StatusOK
			honest.body = fmt.Appendf(nil, `{%q: [{"id": %q, "name": "x-%s", "status": "available", "size": 1}], %q: [{"rel": "next", "href": "http://cloud.test/x"}]}`, keys[0], id, id, keys[1])
		}
		return honest
	}),
	"the same page for ever": after(func(r *http.Request, honest *answered) *answered {
		if keys, is := collectionOf(r); is {
			honest.status = http.StatusOK
			honest.body = fmt.Appendf(nil, `{%q: [{"id": "11111111-2222-4333-8444-555555555555"}, {"id": "21111111-2222-4333-8444-555555555555"}], %q: [{"rel": "next"}]}`, keys[0], keys[1])
		}
		return honest
	}),
	"next links to another host": after(func(r *http.Request, honest *answered) *answered {
		if keys, is := collectionOf(r); is {
			var page map[string]any
			if json.Unmarshal(honest.body, &page) == nil {
				page[keys[1]] = []any{map[string]any{"rel": "next", "href": otherURL + "/next"}}
				honest.body, _ = json.Marshal(page)
			}
		}
		return honest
	}),
	"a string without end":       body(200, `{"volume": {"id": "`, "x"),
	"empty objects without end":  body(200, `{"volumes": [{}`, ",{}"),
	"nulls without end":          body(200, `{"volumes": [null`, ",null"),
	"brackets without end":       body(200, ``, "["),
	"keys without end":           body(200, `{"volume": {"metadata": {"a": ""`, `,"b": ""`),
	"blanks without end":         body(200, ``, " "),
	"an error without end":       body(500, `{"computeFault": {"message": "`, "x"+nasty),
	"a refusal without end":      body(400, `{"badRequest": {"message": "`, "x"),
	"a missing page without end": body(404, ``, "x"),
	"digits without end":         body(200, `{"volume": {"size": 1`, "0"),
	"an HTML page": after(func(_ *http.Request, _ *answered) *answered {
		return &answered{status: 200, body: []byte("<html>" + nasty + "</html>")}
	}),
	"nothing":         after(func(_ *http.Request, honest *answered) *answered { honest.body = nil; return honest }),
	"an empty object": after(func(_ *http.Request, honest *answered) *answered { honest.body = []byte("{}"); return honest }),
	"a byte a second": after(func(_ *http.Request, honest *answered) *answered {
		honest.stream = func(r *http.Request) io.Reader { return drip{r} }
		return honest
	}),
	"a redirect to another host":  redirect(302, otherURL),
	"a redirect to https":         redirect(307, "https://cloud.test"),
	"a redirect to another port":  redirect(308, "http://cloud.test:8080"),
	"a redirect to itself":        redirect(301, cloudURL),
	"numbers instead of texts":    replaced(func(_ string, v any) any { return instead[string](v, 7) }),
	"texts instead of numbers":    replaced(func(_ string, v any) any { return instead[json.Number](v, "seven") }),
	"objects instead of anything": replaced(func(string, any) any { return map[string]any{"a": []any{map[string]any{}}} }),
	"lists instead of anything":   replaced(func(string, any) any { return []any{[]any{}, nil} }),
	"nulls instead of anything":   replaced(func(string, any) any { return nil }),
	"sizes below nothing":         replaced(func(_ string, v any) any { return instead[json.Number](v, -1) }),
	"sizes beyond everything":     replaced(func(_ string, v any) any { return instead[json.Number](v, int64(1)<<62) }),
	"control characters in every text but ids and statuses": replaced(func(key string, v any) any {
		if slices.Contains([]string{"id", "status", "volume_id", "server_id", "volumeId", "serverId", "volume_type", "availability_zone", "created_at", "updated_at"}, key) {
			return v
		}
		return instead[string](v, nasty)
	}),
	"control characters in every text": replaced(func(_ string, v any) any { return instead[string](v, nasty) }),
	"control characters in an error": after(func(_ *http.Request, honest *answered) *answered {
		honest.status, honest.body = http.StatusConflict, mustJSON(map[string]any{"conflict": map[string]any{"message": nasty + strings.Repeat("x", 5000)}})
		honest.header.Set("X-Openstack-Request-Id", "req-\u009b"+strings.Repeat("y", 5000))
		return honest
	}),
	"another object's state": after(func(r *http.Request, honest *answered) *answered {
		if r.Method == http.MethodGet {
			honest.body = bytes.ReplaceAll(honest.body, []byte(`"id": "`), []byte(`"id": "f`))
			honest.body = rewrite(honest.body, func(key string, v any) any {
				if key == "id" {
					return "99999999-2222-4333-8444-555555555555"
				}
				return v
			})
		}
		return honest
	}),
	"unmarked volumes of many servers": after(func(_ *http.Request, honest *answered) *answered {
		var document any
		if json.Unmarshal(honest.body, &document) != nil {
			return honest
		}
		honest.body = mustJSON(unmarked(document))
		return honest
	}),
	"an hour of Retry-After": after(func(_ *http.Request, honest *answered) *answered {
		honest.status = http.StatusTooManyRequests
		honest.header.Set("Retry-After", "999999999999")
		return honest
	}),
	"tokens that are never good": after(func(_ *http.Request, honest *answered) *answered {
		honest.status, honest.body = http.StatusUnauthorized, []byte(nasty)
		return honest
	}),
}

// unmarked takes the metadata of every object away, and gives a volume more servers than there are.
func unmarked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch key {
			case "metadata":
				v[key] = map[string]any{}
			case "attachments":
				servers := []any{}
				for range 2 * mostRequests { // short, since one object has at most 256 KiB and 8,192 values
					servers = append(servers, map[string]any{"server_id": freshID()})
				}
				v[key] = servers
			default:
				v[key] = unmarked(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = unmarked(v[i])
		}
	}
	return v
}

// instead replaces values of type T.
func instead[T any](v, with any) any {
	if _, is := v.(T); is {
		return with
	}
	return v
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// loginAttacks are its attacks on clients that log in.
var loginAttacks = map[string]attack{
	"a login redirected without encryption": login(func(_ *http.Request, honest *answered) *answered {
		honest.status, honest.body = http.StatusTemporaryRedirect, nil
		honest.header.Set("Location", otherURL+"/v3/auth/tokens")
		return honest
	}),
	"a login of empty objects": login(func(r *http.Request, honest *answered) *answered {
		honest.stream = func(*http.Request) io.Reader {
			return io.MultiReader(strings.NewReader(`{"token": {"catalog": [{"endpoints": [{}`), io.LimitReader(&repeating{text: ",{}"}, huge))
		}
		return honest
	}),
	"a login without an answer's end": login(func(_ *http.Request, honest *answered) *answered {
		honest.stream = func(*http.Request) io.Reader { return endless.Byte('x') }
		return honest
	}),
	"a login of an HTML page": login(func(_ *http.Request, honest *answered) *answered {
		honest.body = []byte("<html>" + nasty)
		return honest
	}),
	"a login of a byte a second": login(func(_ *http.Request, honest *answered) *answered {
		honest.stream = func(r *http.Request) io.Reader { return drip{r} }
		return honest
	}),
	"a login that is refused with an essay": login(func(_ *http.Request, honest *answered) *answered {
		honest.status = http.StatusUnauthorized
		honest.stream = func(*http.Request) io.Reader { return io.LimitReader(&repeating{text: nasty}, huge) }
		return honest
	}),
	"a catalog with control characters": login(func(_ *http.Request, honest *answered) *answered {
		honest.body = rewrite(honest.body, func(_ string, v any) any {
			if s, is := v.(string); is {
				return s + nasty
			}
			return v
		})
		return honest
	}),
	"a catalog of wrong types": login(func(_ *http.Request, honest *answered) *answered {
		honest.body = rewrite(honest.body, func(string, any) any { return 7 })
		return honest
	}),
	"versions that are at another host": func(r *http.Request, honest *answered) *answered {
		switch {
		case isLogin(r): // endpoints without a version
			honest.body = []byte(strings.NewReplacer("/compute/v2.1", "/compute", "/volume/v3/", "/volume?").Replace(string(honest.body)))
		case r.Method == http.MethodGet && (strings.Trim(r.URL.Path, "/") == "compute" || strings.Trim(r.URL.Path, "/") == "volume"):
			honest.status = http.StatusMultipleChoices
			honest.body = []byte(`{"versions": [{"id": "v3.0", "links": [{"rel": "self", "href": "` + otherURL + `/v3"}]}, {"id": "v2.1", "links": [{"rel": "self", "href": "` + otherURL + `/v2.1"}]}]}`)
		}
		return honest
	},
}

func login(a attack) attack {
	return func(r *http.Request, honest *answered) *answered {
		if isLogin(r) {
			return a(r, honest)
		}
		return honest
	}
}

// checkElsewhere fails the test for every request that reached another host than the cloud's.
func (h *hostile) checkElsewhere(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, request := range h.elsewhere {
		t.Errorf("another host has got %s", request)
	}
}
