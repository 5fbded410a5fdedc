package transport

import (
	"io"
	"net/http"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const (
	maxRetries    = 3
	firstBackoff  = 250 * time.Millisecond
	maxRetryAfter = 30 * time.Second // for a longer pause the driver returns the error, and the sidecar retries
)

// Retry returns next with retries. It sends a request again only if the failed attempt did no harm (see repeatable). It waits for as long
// as Retry-After says, otherwise for a backoff that doubles. It does not retry if the wait would end after the deadline of the request
// or of the caller (volume.StartBy). Random returns numbers in [0,1), which spread the retries of many callers.
func Retry(next http.RoundTripper, random func() float64) http.RoundTripper {
	return retrier{next, random}
}

type retrier struct {
	next   http.RoundTripper
	random func() float64
}

// RoundTrip implements http.RoundTripper.
func (t retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.next.RoundTrip(req)
		if attempt == maxRetries || !repeatable(req, resp, err) {
			return resp, err
		}
		wait := time.Duration(float64(firstBackoff<<attempt) * (1 + t.random()))
		if resp != nil {
			if pause, ok := retryAfter(resp.Header, time.Now()); ok {
				wait = pause
			}
		}
		deadline, bounded := volume.StartBy(req.Context())
		if wait > maxRetryAfter || bounded && time.Until(deadline) <= wait {
			return resp, err
		}
		again := req.Clone(req.Context())
		if req.Body != nil && req.Body != http.NoBody {
			if again.Body, err = req.GetBody(); err != nil {
				return resp, err
			}
		}
		discard(resp)
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			return nil, notSentError{req.Context().Err()} // the cloud has not acted on any attempt
		}
		req = again
	}
}

// discard reads the rest of an answer, so that the connection can be used again.
func discard(resp *http.Response) {
	if resp != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
	}
}
