package openstack

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// sending watches whether a request gets a connection, and when. Before that the cloud has seen nothing of it.
type sending struct {
	mu        sync.Mutex
	asked     bool
	connected time.Time // zero before the first connection; else of the last
}

// watch returns a context whose request s watches. A transport that reports nothing (net/http/httptrace) leaves s as it is.
func (s *sending) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = true
		},
		GotConn: func(httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.connected = time.Now()
		},
	})
}

// never reports that the transport asked for a connection and never got one.
func (s *sending) never() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked && s.connected.IsZero()
}

// at is when the request was sent, or its last repetition; zero where the transport does not report it.
func (s *sending) at() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected
}

// errNotSent is the end of a context while a request waited for its turn.
type errNotSent struct{ cause error }

func (e errNotSent) Error() string { return "not sent: " + e.cause.Error() }
func (e errNotSent) Unwrap() error { return e.cause }

// neverSent reports that err itself proves that the cloud has seen nothing of the request.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(errThrottled)) || errors.As(err, new(errNotSent))
}
