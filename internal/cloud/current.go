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
	l, _ := NewLive(func() (Settings, error) { return s, nil }, LiveOptions{Options: o}) // fails only where reading does
	return l.Current
}

// Successor gives the cloud that takes the place of this one after its credentials were refused: the settings are read again, and
// if they have changed, logged in with. False means that there is none, and the refusal stands.
func (c *Cloud) Successor(ctx context.Context) (*Cloud, bool) {
	if c.successor == nil {
		return nil, false
	}
	return c.successor(ctx, c)
}
