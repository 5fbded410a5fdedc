package inspect

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxRetries   = 3
	firstBackoff = 500 * time.Millisecond
	maxPause     = 30 * time.Second // a cloud that asks for a longer one is out of order for this run
)

// Retry returns next with retries of reads and logins: after a connection that broke, and after 429, 502, 503 and 504. It waits as long as
// Retry-After says, else for a pause that doubles. It does not retry if the wait would end after the deadline of the request.
func Retry(next http.RoundTripper) http.RoundTripper { return retrier{next} }

type retrier struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.next.RoundTrip(req)
		if attempt == maxRetries || req.Context().Err() != nil || !momentary(resp, err) {
			return resp, err
		}
		again, ok := repeated(req)
		if !ok {
			return resp, err
		}
		wait := pause(resp, attempt)
		if deadline, bounded := req.Context().Deadline(); wait > maxPause || bounded && time.Until(deadline) <= wait {
			return resp, err
		}
		if resp != nil { // so that the connection can be used again
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
		}
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		req = again
	}
}

// repeated is the request for another attempt: one that reads, or a login.
func repeated(req *http.Request) (*http.Request, bool) {
	again := req.Clone(req.Context())
	switch {
	case req.Method == http.MethodGet:
		return again, true
	case req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/auth/tokens") || req.GetBody == nil:
		return nil, false
	}
	body, err := req.GetBody()
	again.Body = body
	return again, err == nil
}

// momentary is whether another attempt may succeed: the connection broke, the request was too early, or a proxy found nobody behind it. A
// certificate that nobody trusts and a name that nobody knows stay as they are.
func momentary(resp *http.Response, err error) bool {
	if err != nil {
		name := (*net.DNSError)(nil)
		return !errors.As(err, new(*tls.CertificateVerificationError)) && !(errors.As(err, &name) && name.IsNotFound)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func pause(resp *http.Response, attempt int) time.Duration {
	if resp != nil {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			return time.Duration(seconds) * time.Second
		}
	}
	return firstBackoff << attempt
}
