package cloud

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	maxRetries = 3
	maxPause   = 30 * time.Second // for a longer one the caller gets the failure
)

// RetryPolicy says what Retry sends again, and when.
type RetryPolicy struct {
	// Again reports whether a request may follow its own failure: one of answer and error is nil.
	Again func(req *http.Request, answer *http.Response, err error) bool
	// Backoff is the first pause; each further one is twice as long. An answer with Retry-After decides for itself.
	Backoff time.Duration
	// Random returns numbers in [0,1), which make backoffs up to twice as long, so that the retries of many callers spread. Nil: they stay.
	Random func() float64
	// Deadline is when an attempt must have begun. Nil: the deadline of the context.
	Deadline func(ctx context.Context) (time.Time, bool)
	// Left makes the error of a request whose context ended in a pause. Nil: the error of the context.
	Left func(error) error
}

// Retry returns next with retries. It does not retry if the pause would end after the deadline.
func Retry(next http.RoundTripper, p RetryPolicy) http.RoundTripper {
	if p.Deadline == nil {
		p.Deadline = context.Context.Deadline
	}
	return retrier{next, p}
}

type retrier struct {
	next   http.RoundTripper
	policy RetryPolicy
}

// RoundTrip implements http.RoundTripper.
func (t retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.next.RoundTrip(req)
		hasBody := req.Body != nil && req.Body != http.NoBody
		if attempt == maxRetries || req.Context().Err() != nil || hasBody && req.GetBody == nil || !t.policy.Again(req, resp, err) {
			return resp, err
		}
		wait := t.pause(resp, attempt)
		deadline, bounded := t.policy.Deadline(req.Context())
		if wait > maxPause || bounded && time.Until(deadline) <= wait {
			return resp, err
		}
		again := req.Clone(req.Context())
		if hasBody {
			if again.Body, err = req.GetBody(); err != nil {
				return resp, err
			}
		}
		if resp != nil { // so that the connection can be used again
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
		}
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			if t.policy.Left != nil {
				return nil, t.policy.Left(req.Context().Err())
			}
			return nil, req.Context().Err()
		}
		req = again
	}
}

func (t retrier) pause(resp *http.Response, attempt int) time.Duration {
	if resp != nil {
		if asked, ok := RetryAfter(resp.Header, time.Now()); ok {
			return asked
		}
	}
	wait := t.policy.Backoff << attempt
	if t.policy.Random != nil {
		wait = time.Duration(float64(wait) * (1 + t.policy.Random()))
	}
	return wait
}

// RetryAfter reads the header Retry-After, which holds seconds or a date (RFC 9110, section 10.2.3).
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 86400)) * time.Second, true // more would overflow
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
