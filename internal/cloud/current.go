package cloud

import (
	"context"
	"time"
)

// Current gives the cloud as it is configured now. Who keeps a Current instead of a *Cloud follows changed credentials, and can
// start before the cloud does.
type Current func(ctx context.Context) (*Cloud, error)

// Fixed is a Current that never changes.
func Fixed(c *Cloud) Current {
	return func(context.Context) (*Cloud, error) { return c, nil }
}

// loginPause is how long a failed login is remembered, so that many callers do not lock an account by trying together.
const loginPause = 2 * time.Second

// Lazy is a Current that logs in when it is first asked and keeps the login; a failed one is tried again for a later caller.
func Lazy(s Settings, o Options) Current {
	var (
		lock   = make(chan struct{}, 1) // a channel, so that who waits for another's login leaves with its own context
		cloud  *Cloud
		failed error
		since  time.Time
	)
	return func(ctx context.Context) (*Cloud, error) {
		select {
		case lock <- struct{}{}:
			defer func() { <-lock }()
		case <-ctx.Done():
			return nil, errorf(ErrUnreachable, "cloud %s: not logged in yet: %w", s.Name, ctx.Err())
		}
		switch {
		case cloud != nil:
			return cloud, nil
		case failed != nil && time.Since(since) < loginPause:
			return nil, failed
		}
		c, err := Connect(ctx, s, o)
		if err == nil {
			cloud, failed = c, nil
		} else if ctx.Err() == nil { // an impatient caller's failure is not the cloud's
			failed, since = err, time.Now()
		}
		return c, err
	}
}
