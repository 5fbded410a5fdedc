package transport

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Budget limits what one cloud costs: the rate of the requests to it, and the memory for its replies. Reads and writes have limiters of
// their own, so that polling never delays an attach. Logins have no rate, but keep a pause that Keystone asks for. If the deadline of a request ends before its turn, Budget does not
// send it and returns a ThrottledError at once.
type Budget struct {
	reads, writes, logins *limiter
	slots                 cloud.Slots
}

// BudgetMeter measures a Budget. Its methods must not block.
type BudgetMeter interface {
	// Limited reports the present limit of a kind ("read" or "write"), in requests a second; +Inf for none.
	Limited(kind string, perSecond float64)
	// Waited reports that a request waited for its turn.
	Waited(kind string, d time.Duration)
	// Complained reports that the cloud asked for fewer requests, and the HTTP status of that answer.
	Complained(kind string, status int)
}

// NewBudget returns a budget of so many requests a second on average. 0 sets no limit until the cloud asks for fewer requests.
func NewBudget(reads, writes float64, m BudgetMeter) *Budget {
	return &Budget{reads: newLimiter("read", reads, m), writes: newLimiter("write", writes, m), logins: newLimiter("login", 0, noMeter{}), slots: cloud.NewSlots()}
}

// Limit returns next, with each request delayed until the budget allows it, and each reply bounded.
func (b *Budget) Limit(next http.RoundTripper) http.RoundTripper {
	return limited{b, b.slots.Bound(next)}
}

type limited struct {
	budget *Budget
	next   http.RoundTripper
}

func (l limited) RoundTrip(req *http.Request) (*http.Response, error) {
	kind := l.budget.of(req)
	deadline, _ := volume.StartBy(req.Context())
	err := kind.wait(req.Context(), deadline)
	if left := volume.CallerLeft(req.Context()); err == nil && left != nil {
		err = notSentError{left}
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := l.next.RoundTrip(req)
	if err == nil && asksForLess(resp) {
		l.budget.complained(kind, resp)
	}
	return resp, err
}

// of is the limiter of a request. Keystone counts logins by itself.
func (b *Budget) of(req *http.Request) *limiter {
	switch {
	case strings.HasSuffix(req.URL.Path, "/auth/tokens"):
		return b.logins
	case isRead(req):
		return b.reads
	}
	return b.writes
}

// complained applies an answer that asks for fewer requests: to the rate of its kind, and to all that share a pause.
func (b *Budget) complained(kind *limiter, resp *http.Response) {
	if pause, ok := cloud.RetryAfter(resp.Header, time.Now()); ok {
		until := time.Now().Add(min(pause, longestPause))
		kind.pause(until)
		if kind != b.logins {
			b.reads.pause(until)
			b.writes.pause(until)
		}
	}
	kind.complained(resp.StatusCode)
}

type noMeter struct{}

func (noMeter) Limited(string, float64)      {}
func (noMeter) Waited(string, time.Duration) {}
func (noMeter) Complained(string, int)       {}

// asksForLess reports whether an answer asks for fewer requests. A 503 without Retry-After does not: most often a service restarts.
func asksForLess(resp *http.Response) bool {
	return rateLimited(resp.StatusCode) || resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""
}

// ThrottledError is the error of a request that was not sent because the deadline ends before its turn.
type ThrottledError struct {
	kind   string
	wait   time.Duration
	paused time.Time // until then, as the cloud has asked; it may be over
}

func (e ThrottledError) Error() string {
	if e.paused.After(time.Now()) {
		return fmt.Sprintf("not sent: the cloud asked for a pause until %s (Retry-After), after the caller's deadline; the driver sends nothing before that",
			e.paused.UTC().Format("15:04:05 MST"))
	}
	return fmt.Sprintf("not sent: the next %s is allowed in %s, after the caller's deadline; the cloud asked for fewer requests, or --openstack-%ss-per-second is too low",
		e.kind, e.wait.Round(time.Millisecond), e.kind)
}
