package doctor

import (
	"crypto/x509"
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
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		h.dated, h.skew = true, skew(date, began, ended)
	}
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
