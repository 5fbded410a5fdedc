package openstack

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Retry repeats requests that failed for the moment and did no harm: reads after 5xx, 429 or a broken connection; everything else
// only after 429 or when no connection was made, because then the cloud has not acted. It waits as Retry-After says, else longer
// each time, and gives up when the wait would outlast the request's context, or the caller (volume.StartBy).
type Retry struct {
	Next http.RoundTripper
	// Rand gives numbers in [0,1) that spread the retries of many callers.
	Rand func() float64
}

const (
	retries    = 3
	firstWait  = 250 * time.Millisecond
	longestAsk = 30 * time.Second // a longer Retry-After is for the caller's caller
)

// RoundTrip implements http.RoundTripper.
func (t Retry) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.Next.RoundTrip(req)
		if attempt == retries || !repeatable(req, resp, err) {
			return resp, err
		}
		wait := time.Duration(float64(firstWait<<attempt) * (1 + t.Rand()))
		if resp != nil {
			if asked, ok := retryAfter(resp.Header, time.Now()); ok {
				wait = asked
			}
		}
		deadline, bounded := volume.StartBy(req.Context())
		if wait > longestAsk || bounded && time.Until(deadline) <= wait {
			return resp, err
		}
		next := req.Clone(req.Context())
		if req.Body != nil && req.Body != http.NoBody {
			if next.Body, err = req.GetBody(); err != nil {
				return resp, err
			}
		}
		if resp != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // or the connection is not kept
			_ = resp.Body.Close()
		}
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			return nil, errNotSent{req.Context().Err()} // only what the cloud has not acted on is repeated
		}
		req = next
	}
}

// repeatable reports whether the request may be sent again.
func repeatable(req *http.Request, resp *http.Response, err error) bool {
	if req.Context().Err() != nil || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case errors.As(err, new(errThrottled)):
		return false
	case err != nil:
		return read || neverSent(err)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == statusRateLimited:
		return true
	case resp.StatusCode == http.StatusNotImplemented:
		return false
	}
	return read && resp.StatusCode >= 500
}

// retryAfter reads the header in both its forms, seconds and date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
