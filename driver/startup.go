package driver

import (
	"context"
	"sync/atomic"
	"time"
)

// startup tells whether the driver has been ready since it started.
//
// Kubernetes stops a rollout whose new pods are not ready. A pod that was ready must stay so in an outage of the cloud, or rollouts and drains
// would wait for its end.
type startup struct {
	check  func(context.Context) error // whether every cloud answers
	began  time.Time
	logins atomic.Int32 // clouds without a login
	done   atomic.Bool
}

// startupPatience is how long the sidecars of a pod wait for the first login. They compete for the leadership only after that. In a rollout with
// wrong credentials the sidecars of the old pod lead by then: they try every 5 seconds, or every 26 on OpenShift. It is shorter than the two
// minutes after which the liveness probe restarts a driver that is not ready.
const startupPatience = 90 * time.Second

// newStartup returns the startup of a driver with a number of clouds. Without clouds it is ready.
func newStartup(clouds int, check func(context.Context) error) *startup {
	s := &startup{check: check, began: time.Now()}
	s.logins.Store(int32(clouds))
	s.done.Store(clouds == 0)
	return s
}

// loggedIn says that the driver has logged in to one more cloud.
func (s *startup) loggedIn() {
	if s.logins.Add(-1) == 0 {
		s.done.Store(true)
	}
}

// ready always succeeds after its first success.
func (s *startup) ready(ctx context.Context) error {
	if s.done.Load() {
		return nil
	}
	err := s.check(ctx)
	if err == nil {
		s.done.Store(true)
	}
	return err
}

// probe is the answer to the sidecars and the liveness probe, which must not restart the driver because of the cloud.
func (s *startup) probe() bool { return s.done.Load() || time.Since(s.began) >= startupPatience }
