package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

func TestNeverSentNeedsProof(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"refused":            {&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		"proxy":              {&net.OpError{Op: "proxyconnect", Err: errors.New("refused")}, true},
		"wrong certificate":  {&tls.CertificateVerificationError{Err: errors.New("expired")}, true},
		"over the budget":    {ThrottledError{}, true},
		"left while waiting": {notSentError{context.Canceled}, true},
		"broken while read":  {&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		"no answer":          {io.ErrUnexpectedEOF, false},
		"timeout":            {context.DeadlineExceeded, false},
	} {
		if got := NeverSent(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestSentRecordsWhetherThereWasAConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dial  func(context.Context, string, string) (net.Conn, error)
		never bool
	}{
		"refused": {func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }, true},
		"broken": {func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			return ours, nil
		}, false},
	} {
		var s Sent
		if s.Never() || !s.At().IsZero() {
			t.Error("nothing is known yet")
		}
		rt := &http.Transport{DialContext: tc.dial}
		if _, err := send(s.Watch(t.Context()), t, rt, "POST"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if s.Never() != tc.never || s.At().IsZero() != tc.never {
			t.Errorf("%s: never %v, at %v", name, s.Never(), s.At())
		}
	}
}
