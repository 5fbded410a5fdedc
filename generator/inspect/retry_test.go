package inspect

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// answers is a transport that gives these answers one after the other, and the last one again and again.
type answers struct {
	t     *testing.T
	all   []any // an error, or a status
	after string
	sent  int
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if body, err := io.ReadAll(req.Body); err != nil || string(body) != "body" {
			a.t.Errorf("attempt %d: want the whole body, got %q, %v", a.sent, body, err)
		}
	}
	answer := a.all[min(a.sent, len(a.all)-1)]
	a.sent++
	if err, failed := answer.(error); failed {
		return nil, err
	}
	resp := respond(answer.(int), "{}")
	if a.after != "" {
		resp.Header.Set("Retry-After", a.after)
	}
	return resp, nil
}

func TestWhatMayBeTriedAgainIsTriedAgain(t *testing.T) {
	broken := errors.New("connection reset by peer")
	for _, c := range []struct {
		name, method, path, after string
		answers                   []any
		timeout                   time.Duration
		want                      int // attempts
		took                      time.Duration
	}{
		{"an answer", "GET", "/types", "", []any{200}, 0, 1, 0},
		{"a rate limit", "GET", "/types", "", []any{429, 200}, 0, 2, 500 * time.Millisecond},
		{"a rate limit that says how long", "GET", "/types", "7", []any{429, 200}, 0, 2, 7 * time.Second},
		{"a rate limit that says until when", "GET", "/types", "Sat, 01 Jan 2000 00:00:05 GMT", []any{429, 200}, 0, 2, 5 * time.Second},
		{"a rate limit that lasts too long", "GET", "/types", "3600", []any{429, 200}, 0, 1, 0},
		{"a proxy", "GET", "/types", "", []any{502, 503, 504, 200}, 0, 4, 3500 * time.Millisecond},
		{"an outage", "GET", "/types", "", []any{503}, 0, 4, 3500 * time.Millisecond},
		{"a broken connection", "GET", "/types", "", []any{broken, 200}, 0, 2, 500 * time.Millisecond},
		{"no time left", "GET", "/types", "", []any{503, 200}, 400 * time.Millisecond, 1, 0},
		{"an internal error", "GET", "/types", "", []any{500, 200}, 0, 1, 0},
		{"a refusal", "GET", "/types", "", []any{403, 200}, 0, 1, 0},
		{"a login", "POST", "/identity/v3/auth/tokens", "", []any{503, 201}, 0, 2, 500 * time.Millisecond},
		{"any other request that writes", "POST", "/volumes", "", []any{503, 201}, 0, 1, 0},
		{"a certificate", "GET", "/types", "", []any{&tls.CertificateVerificationError{}, 200}, 0, 1, 0},
		{"a name that nobody knows", "GET", "/types", "", []any{&net.DNSError{IsNotFound: true}, 200}, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.timeout)
				defer cancel()
			}
			var body io.Reader
			if c.method == "POST" {
				body = strings.NewReader("body")
			}
			req, err := http.NewRequestWithContext(ctx, c.method, address+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			way := &answers{t: t, all: c.answers, after: c.after}
			began := time.Now()
			resp, err := Retry(way).RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			if took := time.Since(began); way.sent != c.want || took != c.took {
				t.Errorf("%s: want %d attempts in %s, got %d in %s", c.name, c.want, c.took, way.sent, took)
			}
		})
	}
}

func TestOneHiccupOfEachRequestIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		way := &hiccup{next: memnet.Transport(sim.Handler()), seen: map[string]bool{}}
		c := connectAs(t, sim, "sim-demo", address, Retry(way))
		inv, err := Inspect(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, state := range statesOf(inv) {
			if state == v1alpha1.Failed {
				t.Errorf("%s failed", name)
			}
		}
	})
}

// hiccup answers each request with 503 the first time.
type hiccup struct {
	next http.RoundTripper
	lock sync.Mutex
	seen map[string]bool
}

func (h *hiccup) RoundTrip(req *http.Request) (*http.Response, error) {
	h.lock.Lock()
	again := h.seen[req.URL.Path]
	h.seen[req.URL.Path] = true
	h.lock.Unlock()
	if !again {
		return respond(http.StatusServiceUnavailable, "later"), nil
	}
	return h.next.RoundTrip(req)
}
