package cloud

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

const tokenHeader = "X-Auth-Token"

// sentTokens are the tokens of one request: that of its first attempt, and the renewed one. A gateway may repeat the first in an answer that
// arrives after another request has renewed it, and Keystone still accepts it.
type sentTokens struct {
	mu  sync.Mutex
	all []string
}

type sentTokensKey struct{}

// watch returns a context whose requests are noted.
func (s *sentTokens) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentTokensKey{}, s)
}

func (s *sentTokens) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// tokenNoter is next, and notes the tokens of the requests.
type tokenNoter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tokenNoter) RoundTrip(req *http.Request) (*http.Response, error) {
	if s, ok := req.Context().Value(sentTokensKey{}).(*sentTokens); ok {
		s.mu.Lock()
		s.all = append(s.all, req.Header.Values(tokenHeader)...)
		s.mu.Unlock()
	}
	resp, err := t.next.RoundTrip(req)
	if resp != nil && resp.Request == nil {
		resp.Request = req
	}
	return resp, err
}

// tokensOf are the tokens of the request of a reply.
func tokensOf(reply *http.Response) []string {
	if reply == nil || reply.Request == nil {
		return nil
	}
	return reply.Request.Header.Values(tokenHeader)
}
