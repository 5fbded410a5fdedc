package openstack

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/openstack/transport"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

// stages are a Cinder behind the driver's own transports.
func stages(t *testing.T, cinder http.RoundTripper) *Cloud {
	t.Helper()
	f := &fake{}
	s := cloud.Settings{Name: "fake", AuthURL: "http://keystone/v3", UserID: "u", Password: "p", ProjectID: "p"}
	c, err := cloud.Connect(t.Context(), s, cloud.Options{Transport: split{f, cinder}, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return transport.Retry(transport.NewBudget(0, 0, unmeasured{}).Limit(next), func() float64 { return 0 })
	}})
	if err != nil {
		t.Fatal(err)
	}
	return New(c, slog.New(slog.DiscardHandler))
}

// unmeasured is a transport.BudgetMeter that ignores everything.
type unmeasured struct{}

func (unmeasured) Limited(string, float64)      {}
func (unmeasured) Waited(string, time.Duration) {}
func (unmeasured) Complained(string, int)       {}

// split sends logins to Keystone and all else to Cinder.
type split struct{ keystone, cinder http.RoundTripper }

func (s split) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		return s.keystone.RoundTrip(r)
	}
	return s.cinder.RoundTrip(r)
}

func createWithin(t *testing.T, c *Cloud, limit time.Duration) *volume.Error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // not a deadline: that fails sooner
	defer cancel()
	defer time.AfterFunc(limit, cancel).Stop()
	_, err := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
	var failure *volume.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v", err)
	}
	return failure
}

func TestACreateWhoseCallerLeavesBeforeItIsSentIsNotLost(t *testing.T) {
	throttled := memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	for name, test := range map[string]struct {
		cinder http.RoundTripper
		before int // creates that end before
	}{
		"in the pause before a repetition": {cinder: throttled},
		"while the budget holds it back":   {cinder: throttled, before: 1},
		"before there is a connection": {cinder: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(30 * time.Second)
			return nil, errors.New("no route to host")
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := stages(t, test.cinder)
				for range test.before {
					createWithin(t, c, time.Second)
				}
				if failure := createWithin(t, c, 5*time.Second); failure.Kind != volume.Canceled || failure.Sent {
					t.Errorf("got %v, kind %s, sent %v", failure, failure.Kind, failure.Sent)
				}
				time.Sleep(time.Minute) // the dial ends
			})
		})
	}
}

// The hold-off of a create begins when its last repetition was sent, not when the call began.
func TestALostCreateTellsWhenItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := stages(t, memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			time.Sleep(30 * time.Second)
			w.WriteHeader(http.StatusGatewayTimeout)
		})))
		begin := time.Now()
		failure := createWithin(t, c, time.Minute)
		if !failure.Sent || failure.SentAt.Sub(begin) != 20*time.Second || time.Since(begin) != 50*time.Second {
			t.Errorf("got %v, sent %v at %s", failure, failure.Sent, failure.SentAt.Sub(begin))
		}
	})
}

// An attach goes on after its caller has left, but is not sent then.
func TestNothingIsSentOnceItMayNotStart(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	for name, test := range map[string]struct {
		left  time.Duration
		calls int32 // that the cloud gets
		kind  volume.Kind
	}{
		"it is not repeated, and the next is not held back for so long": {10 * time.Second, 1, volume.Unavailable},
		"the time is over": {0, 0, volume.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				c := stages(t, memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1); busy(w, r) })))
				begin := time.Now()
				caller, cancel := context.WithDeadline(t.Context(), begin.Add(test.left))
				defer cancel()
				ctx := volume.WithCaller(t.Context(), caller)
				for range 2 {
					_, err := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
					if !volume.Is(err, test.kind) || volume.MayHaveWritten(err) {
						t.Errorf("got %v of kind %s", err, volume.KindOf(err))
					}
				}
				if calls.Load() != test.calls || time.Since(begin) != 0 {
					t.Errorf("%d calls in %v", calls.Load(), time.Since(begin))
				}
			})
		})
	}
}

// A request outlives its caller once it is sent. A caller that dies before that must not leave an object that no retry looks for.
func TestNothingIsSentAfterTheCallerHasLeft(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"too many requests": http.StatusTooManyRequests, "token expired": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithCancel(t.Context())
				var calls atomic.Int32
				c := stages(t, memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					calls.Add(1)
					leave()
					w.WriteHeader(status)
				})))
				_, err := c.CreateVolume(volume.WithCaller(t.Context(), caller), volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
				if calls.Load() != 1 || err == nil || volume.MayHaveWritten(err) {
					t.Errorf("%d calls: %v", calls.Load(), err)
				}
			})
		})
	}
}

func TestOnlyAnAnswerOfTheServiceEndsARequest(t *testing.T) {
	t.Parallel()
	const (
		haproxy = "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>"
		apache  = "<html><head><title>500 Internal Server Error</title></head></html>"
		envoy   = "upstream connect error or disconnect/reset before headers. reset reason: connection termination"
		cinder  = `{"computeFault": {"code": 500, "message": "The server has either erred or is incapable of performing the requested operation."}}`
	)
	withoutID := map[string]string{"X-Openstack-Request-Id": ""}
	for name, tc := range map[string]struct {
		answer   answer
		answered bool
	}{
		"Cinder's exception":          {answer{status: 500, body: cinder, header: withoutID}, true},
		"its request ID alone":        {answer{status: 500, body: apache}, true},
		"a proxy's exception":         {answer{status: 500, body: apache, header: withoutID}, false},
		"HAProxy without a server":    {answer{status: 503, body: haproxy, header: withoutID}, true},
		"Cinder refuses everything":   {answer{status: 503, body: cinder}, true},
		"Envoy lost its connection":   {answer{status: 503, body: envoy, header: withoutID}, false},
		"a proxy got no answer":       {answer{status: 502, header: withoutID}, false},
		"a proxy's timeout":           {answer{status: 504, header: withoutID}, false},
		"a timeout with a request ID": {answer{status: 504}, false},
		"no answer":                   {answer{err: errors.New("connection reset")}, false},
		"an unreadable answer":        {answer{status: 202, body: "{"}, false},
	} {
		c, _ := connect(t, tc.answer)
		_, err := c.CreateVolume(t.Context(), volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
		if !volume.MayHaveWritten(err) || volume.Answered(err) != tc.answered {
			t.Errorf("%s: written %v, answered %v, want %v: %v", name, volume.MayHaveWritten(err), volume.Answered(err), tc.answered, err)
		}
	}
}
