package cloud

import (
	"net/http"
	"strings"
)

// The bounds of one answer, counted after decompression. A page of 1,000 volumes as an administrator sees them, each with three
// attachments, a description of 255 characters and ten entries of metadata of 100, has 4.9 MB and 75,000 separators
// (TestAFullPageOfVolumesFits). A page of volumes that all have the most metadata there can be does not fit.
const (
	MaxBody       = 8 << 20   // bytes of an answer
	maxLogin      = 512 << 10 // bytes of a login's answer: the catalogs of large clouds have some 100 KiB, and gophercloud decodes it several times
	maxErrorBody  = 64 << 10  // bytes of an error; the rest is cut off
	maxSeparators = 256 << 10 // commas and opening brackets outside strings: what a short JSON text may become in memory
	smallBody     = 64 << 10  // bytes; what is shorter needs no slot
	largeBodies   = 2         // slots: larger answers that are read and decoded at a time
)

// Limits bound what a cloud's answers can cost. One of them serves all clouds of a process.
type Limits struct{ slots chan struct{} }

// NewLimits gives the limits of a process.
func NewLimits() *Limits { return &Limits{slots: make(chan struct{}, largeBodies)} }

// Bound gives next with its answers bounded: reading more than MaxBody bytes of one is an error, of an answer from status 400 on only the
// beginning is given, and at most two answers of more than 64 KiB are read and decoded at a time.
func (l *Limits) Bound(next http.RoundTripper) http.RoundTripper { return bounded{l, next} }

type bounded struct {
	limits *Limits
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	body := &boundedBody{ReadCloser: resp.Body, ctx: req.Context(), limits: b.limits, most: MaxBody}
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		body.most, body.cut = maxErrorBody, true
	case strings.HasSuffix(req.URL.Path, "/auth/tokens"):
		body.most = maxLogin
	}
	resp.Body = body
	return resp, nil
}
