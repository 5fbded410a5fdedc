package transport

import (
	"errors"
	"net/http"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// statusRateLimited is the 429 of Swift and of some proxies.
const statusRateLimited = 498

// rateLimited reports whether a status says that the service refused a request because there were too many.
func rateLimited(status int) bool {
	return status == http.StatusTooManyRequests || status == statusRateLimited
}

func isRead(req *http.Request) bool {
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// repeatable reports whether the driver may send a failed request again. A read may follow a 5xx, a 429 or a broken connection. A write
// may follow only a 429 or a failed connect, because the cloud has not acted then.
func repeatable(req *http.Request, resp *http.Response, err error) bool {
	if req.Context().Err() != nil || volume.CallerLeft(req.Context()) != nil || volume.OneAttempt(req.Context()) {
		return false
	}
	switch {
	case errors.As(err, new(ThrottledError)):
		return false
	case err != nil:
		return isRead(req) || NeverSent(err)
	case rateLimited(resp.StatusCode):
		return true
	case resp.StatusCode == http.StatusNotImplemented:
		return false
	}
	return isRead(req) && resp.StatusCode >= 500
}
