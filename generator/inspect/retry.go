package inspect

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

const firstBackoff = 500 * time.Millisecond

// Retry returns next with retries of reads and logins: after a connection that broke, and after 429, 502, 503 and 504.
func Retry(next http.RoundTripper) http.RoundTripper {
	return cloud.Retry(next, cloud.RetryPolicy{
		Backoff: firstBackoff,
		Again: func(req *http.Request, resp *http.Response, err error) bool {
			login := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/auth/tokens")
			return (req.Method == http.MethodGet || login) && momentary(resp, err)
		},
	})
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
