package cloud

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Current returns the cloud as it is configured now. A caller that keeps a Current instead of a *Cloud follows changed
// credentials, and can start before the cloud does.
type Current func(ctx context.Context) (*Cloud, error)

// Fixed is a Current that never changes.
func Fixed(c *Cloud) Current {
	return func(context.Context) (*Cloud, error) { return c, nil }
}

// loginPause is how long Live remembers a failed login. Without it, many callers at once could lock an account.
const loginPause = 2 * time.Second

// longestPause is how long a refused login is remembered at most.
const longestPause = time.Minute

// refusal remembers that Keystone refused the credentials. Each further login with them could lock the account for everybody who uses it.
type refusal struct {
	err   error
	pause time.Duration
	until time.Time
}

// try runs login. For a pause after a refusal, which doubles with each, it returns that one instead. The caller runs one at a time.
func (r *refusal) try(login func() error) error {
	if time.Now().Before(r.until) {
		return r.err
	}
	err := login()
	if !errors.Is(err, ErrUnauthorised) && !gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		*r = refusal{}
		return err
	}
	r.err, r.pause = err, min(max(2*r.pause, loginPause), longestPause)
	r.until = time.Now().Add(r.pause)
	return err
}

// Successor returns the cloud that replaces this one after Keystone refused its credentials. It reads the settings again and logs
// in if they changed. False means that there is no such cloud, and the refusal stands.
func (c *Cloud) Successor(ctx context.Context) (*Cloud, bool) {
	if c.live == nil {
		return nil, false
	}
	return c.live.after(ctx, c)
}

// Relocated returns the cloud that replaces this one after a service did not answer: the catalog may name another address for it now. It asks
// Keystone from time to time only. False means that no service has moved.
func (c *Cloud) Relocated(ctx context.Context) (*Cloud, bool) {
	if c.live == nil {
		return nil, false
	}
	return c.live.relocate(ctx, c)
}
