package transport

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// answer is one answer of a fake cloud; err is a broken connection.
type answer struct {
	status     int
	retryAfter string
	err        error
}

// fake is the transport below the wrappers. It records when requests came, and their bodies.
type fake struct {
	answer func(n int) answer // to the nth request; nil is always 200

	mu     sync.Mutex
	at     []time.Time
	bodies []string
}

// answering is a fake that answers by a script, and repeats the last answer.
func answering(script ...answer) *fake {
	return &fake{answer: func(n int) answer { return script[min(n, len(script)-1)] }}
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.at)
	f.at = append(f.at, time.Now())
	if req.Body != nil {
		body, _ := io.ReadAll(req.Body)
		f.bodies = append(f.bodies, string(body))
	}
	a := answer{status: http.StatusOK}
	if f.answer != nil {
		a = f.answer(n)
	}
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{}
	if a.retryAfter != "" {
		header.Set("Retry-After", a.retryAfter)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: http.NoBody}, nil
}

// send sends one request to Cinder and returns the status of the answer. Bodies are empty, except those of POST.
func send(ctx context.Context, t *testing.T, rt http.RoundTripper, method string) (int, error) {
	t.Helper()
	return sendTo(ctx, t, rt, method, "http://cinder/v3/volumes")
}

func sendTo(ctx context.Context, t *testing.T, rt http.RoundTripper, method, url string) (int, error) {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("body")
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// meter is a BudgetMeter and a Meter that records.
type meter struct {
	mu         sync.Mutex
	limits     map[string]float64
	waits      int
	complaints int
	statuses   []int
	took       []time.Duration
}

func (m *meter) Limited(kind string, perSecond float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits == nil {
		m.limits = map[string]float64{}
	}
	m.limits[kind] = perSecond
}

func (m *meter) Waited(string, time.Duration) { m.mu.Lock(); m.waits++; m.mu.Unlock() }
func (m *meter) Complained(string, int)       { m.mu.Lock(); m.complaints++; m.mu.Unlock() }

func (m *meter) Answered(_ *http.Request, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.statuses, m.took = append(m.statuses, status), append(m.took, took)
}

func noJitter() float64 { return 0 }

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
