package openstacksim

import (
	"slices"
	"time"
)

// Request is one request that the cloud received.
type Request struct {
	Method, Path, Query string // Path as in the URL: /volume/v3/PROJECT/volumes
	Microversion        string // from the reply: "volume 3.70"; "" if the service has none
	Status              int    // 0: the cloud sent no reply
	Begun               time.Time
	Took                time.Duration
	Body                string // of the request
}

// kept is how many requests the record keeps; the count continues.
const kept = 1 << 15

func (s *Sim) record(c *call, status int) {
	defer s.lock()()
	s.counted++
	if len(s.requests) == kept {
		s.requests = slices.Delete(s.requests, 0, kept/2)
	}
	body := string(c.body)
	if c.service == identity {
		body = "" // holds passwords
	}
	s.requests = append(s.requests, Request{c.Method, c.URL.Path, c.URL.RawQuery, c.echo, status, c.begun, time.Since(c.begun), body})
}

// Requests are the requests so far, oldest first. Of very many, only the latest remain.
func (s *Sim) Requests() []Request {
	defer s.lock()()
	return slices.Clone(s.requests)
}

// RequestCount is how many requests there were since the last ResetRequests.
func (s *Sim) RequestCount() int {
	defer s.lock()()
	return s.counted
}

// ResetRequests forgets the requests so far.
func (s *Sim) ResetRequests() {
	defer s.lock()()
	s.requests, s.counted = nil, 0
}
