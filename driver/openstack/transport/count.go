package transport

import (
	"net/http"
	"time"
)

// Meter counts the requests to OpenStack. Its method must not block.
type Meter interface {
	// Answered reports a request, the status of its answer and how long that took. Status 0 means that there was no answer.
	Answered(req *http.Request, status int, took time.Duration)
}

// Count returns next, with every attempt reported to m.
func Count(next http.RoundTripper, m Meter) http.RoundTripper { return counted{next, m} }

type counted struct {
	next  http.RoundTripper
	meter Meter
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := c.next.RoundTrip(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	c.meter.Answered(req, status, time.Since(start))
	return resp, err
}
