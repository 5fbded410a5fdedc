package transport

import (
	"net/http"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

const firstBackoff = 250 * time.Millisecond

// Retry returns next with retries. It sends a request again only if the failed attempt did no harm (see repeatable). The pause must end before
// the deadline of the request and of the caller (volume.StartBy). Random returns numbers in [0,1), which spread the retries of many callers.
func Retry(next http.RoundTripper, random func() float64) http.RoundTripper {
	return cloud.Retry(next, cloud.RetryPolicy{
		Again: repeatable, Backoff: firstBackoff, Random: random, Deadline: volume.StartBy,
		Left: func(err error) error { return notSentError{err} }, // the cloud has not acted on any attempt
	})
}
