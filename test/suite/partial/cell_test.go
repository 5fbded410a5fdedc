package partial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// inFlight is how many calls are in flight at once.
var inFlight = []int{1, 4, 20}

// cell is one fault of one kind of request during one path through an RPC.
type cell struct {
	scenario scenario
	kind     kind
	fault    fault
	n        int
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %d in flight: %s: %s", c.scenario, c.n, c.kind, c.fault.name)
}

// run is what the calls of a scenario came to.
type run struct {
	errs  []error
	took  time.Duration // until the last answer
	calls int           // requests to Cinder and Nova
	hits  int           // of them, those that the fault met
	kinds map[kind]int
	said  string // the last failure in the driver's log
	// doubled are the names that two objects of one kind have after a retry.
	doubled []string
}

func (r run) sorted() []kind {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b kind) int { return strings.Compare(a.String(), b.String()) })
}

// worst is the error with the code that needs the most explanation: a final one before a retryable one before none.
func (r run) worst() error {
	rank := func(err error) int {
		switch code := status.Code(err); {
		case code == codes.OK:
			return 0
		case retryable(code):
			return 1
		}
		return 2
	}
	return slices.MaxFunc(r.errs, func(a, b error) int { return rank(a) - rank(b) })
}

func (r run) failed() (n int) {
	for _, err := range r.errs {
		if err != nil {
			n++
		}
	}
	return n
}

// retryable says whether every sidecar continues after a code as if the object may exist (isFinalError of external-provisioner,
// external-attacher, external-resizer and external-snapshotter).
func retryable(code codes.Code) bool {
	return slices.Contains([]codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}, code)
}

// play runs a scenario on a fresh cloud. A nil fault is the healthy run.
func play(t *testing.T, s scenario, n int, k kind, f *fault) (r run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, n)
		s.prepared(w)
		if f != nil {
			w.breaker.breaks(k, *f)
			w.sim.SetLag(f.lag)
		}
		r.errs, r.took = w.each(func(ctx context.Context, i int) error { return s.call(ctx, w, i) })
		r.calls, r.hits, r.kinds = w.breaker.counts()
		if r.failed() > 0 {
			synctest.Wait() // the driver has logged it too
			logged, err := w.log.Failed(s.rpc)
			if err != nil {
				t.Error(err)
			}
			r.said = logged.Error
		}
		if strings.HasPrefix(s.rpc, "Create") {
			w.each(func(ctx context.Context, i int) error { // a sidecar retries what failed
				if r.errs[i] == nil {
					return nil
				}
				return s.call(ctx, w, i)
			})
			w.sim.SetLag(0)
			r.doubled = w.doubled()
		}
		if unknown := w.breaker.unknown; len(unknown) > 0 {
			t.Errorf("%s sends a request that is not in openstack.Calls: %v", s, unknown)
		}
	})
	return r
}
