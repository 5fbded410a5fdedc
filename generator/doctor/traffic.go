package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// Traffic watches the responses of the cloud that the other checks cause anyway: certificates and clocks need no request of their own.
type Traffic struct {
	Now func() time.Time

	lock  sync.Mutex
	hosts map[string]*host
}

// host is what the responses of one host said.
type host struct {
	chain []*x509.Certificate // as the server sent it; nil for plain HTTP
	dated bool
	skew  time.Duration // by how much its clock is ahead, at least
}

// Watch wraps a transport.
func (t *Traffic) Watch(next http.RoundTripper) http.RoundTripper {
	return watcher{traffic: t, next: next}
}

type watcher struct {
	traffic *Traffic
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	began := w.traffic.Now()
	resp, err := w.next.RoundTrip(r)
	if err == nil {
		w.traffic.record(r.URL.Host, resp, began, w.traffic.Now())
	}
	return resp, err
}

func (t *Traffic) record(name string, resp *http.Response, began, ended time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.hosts == nil {
		t.hosts = map[string]*host{}
	}
	h := t.hosts[name]
	if h == nil {
		h = &host{}
		t.hosts[name] = h
	}
	if resp.TLS != nil {
		h.chain = resp.TLS.PeerCertificates
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if issued, found := issuedAt(resp); found {
		date, err = issued, nil
	}
	if err == nil {
		h.dated, h.skew = true, skew(date, began, ended)
	}
}

// issuedAt is when Keystone made the token of a login, by its own clock. A Date header is often that of a proxy, and Keystone in uWSGI sends none.
func issuedAt(resp *http.Response) (time.Time, bool) {
	if resp.Header.Get("X-Subject-Token") == "" || resp.Body == nil {
		return time.Time{}, false
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body = readAgain{io.MultiReader(bytes.NewReader(text), failing{err}), resp.Body}
	var login struct {
		Token struct {
			IssuedAt time.Time `json:"issued_at"`
		}
	}
	if err != nil || json.Unmarshal(text, &login) != nil || login.Token.IssuedAt.IsZero() {
		return time.Time{}, false
	}
	return login.Token.IssuedAt, true
}

// readAgain gives a body that was read to the reader of the response.
type readAgain struct {
	io.Reader
	io.Closer
}

// failing ends a body with the error with which it ended before.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// skew is how far a Date header, which counts whole seconds, lies outside of the time of the request.
func skew(date, began, ended time.Time) time.Duration {
	switch {
	case date.After(ended):
		return date.Sub(ended)
	case date.Add(time.Second).Before(began):
		return date.Add(time.Second).Sub(began)
	}
	return 0
}
