package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Sent records whether a request got a connection, and when. The cloud sees nothing of a request before that. The zero Sent is ready.
type Sent struct {
	asked     atomic.Bool
	connected atomic.Pointer[time.Time] // when the last attempt got its connection; nil before the first
}

// Watch returns a context for the request to record. A transport without net/http/httptrace records nothing.
func (s *Sent) Watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			now := time.Now()
			s.connected.Store(&now)
		},
	})
}

// Never reports that the transport asked for a connection and got none.
func (s *Sent) Never() bool {
	return s.asked.Load() && s.connected.Load() == nil
}

// At is when the last attempt was sent; zero where the transport records nothing.
func (s *Sent) At() time.Time {
	if at := s.connected.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// notSentError is the error of a request whose context ended, or whose caller left, while it waited for its turn.
type notSentError struct{ cause error }

func (e notSentError) Error() string { return "not sent: " + e.cause.Error() }
func (e notSentError) Unwrap() error { return e.cause }

// NeverSent reports whether err itself proves that the cloud has seen nothing of the request.
func NeverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(ThrottledError)) || errors.As(err, new(notSentError))
}
