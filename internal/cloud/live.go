package cloud

import (
	"context"
	"os"
	"reflect"
	"sync/atomic"
	"time"
)

// Live is a cloud whose settings may change while it is in use: credentials, certificate authorities, region. A *Cloud that a
// caller already has stays as it is. Current returns the latest one whose login succeeded.
type Live struct {
	read    func() (Settings, error)
	options LiveOptions
	cloud   atomic.Pointer[Cloud] // nil until the first login

	// busy is the lock of the fields below and of every login. It is a channel, so a caller that waits for a login of another
	// caller can stop when its own context ends.
	busy   chan struct{}
	wanted reading
	failed error // of the last login, while there is no cloud
	since  time.Time
}

// LiveOptions are Options and one more.
type LiveOptions struct {
	Options
	// Refused runs when the cloud refuses credentials that it accepted before, and before the request of the caller fails. It
	// should reload the settings. If it is nil, Live reloads its own.
	Refused func(ctx context.Context)
}

// reading is everything that decides how to log in: the settings and the content of the files that they name.
type reading struct {
	settings Settings
	files    map[string]string // content of the CA, certificate and key files
}

// NewLive reads the settings for the first time; it does not log in. Its errors are those of read.
func NewLive(read func() (Settings, error), o LiveOptions) (*Live, error) {
	l := &Live{read: read, options: o, busy: make(chan struct{}, 1)}
	settings, err := read()
	if err != nil {
		return nil, err
	}
	l.wanted, _ = withFiles(settings) // the login reports a CA file that is still missing
	return l, nil
}

// withFiles reads the files that settings name. If it cannot read one, it still returns the others. Errors: ErrBadFile.
func withFiles(settings Settings) (reading, error) {
	now := reading{settings: settings, files: map[string]string{}}
	var failed error
	for _, path := range []string{settings.CACertFile, settings.CertFile, settings.KeyFile} {
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			failed = errorf(ErrBadFile, "cloud %s: %w", settings.Name, err)
		}
		now.files[path] = string(content)
	}
	return now, failed
}

// Current implements Current: it logs in at its first call and keeps the login. After a failed login, a later call tries again.
func (l *Live) Current(ctx context.Context) (*Cloud, error) {
	if c := l.cloud.Load(); c != nil {
		return c, nil
	}
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	c := l.cloud.Load()
	switch {
	case c != nil:
		return c, nil
	case l.failed != nil && time.Since(l.since) < loginPause:
		return nil, l.failed
	}
	return l.login(ctx, l.wanted)
}

// Reload reads the settings again. If they changed, it logs in with them. The new login replaces the one in use only if it
// succeeds: a broken file or a refused credential leaves the cloud as it is. Before the first login there is nothing to keep, so
// the next caller logs in with the new settings. Errors: those of read and Connect.
func (l *Live) Reload(ctx context.Context) (changed bool, err error) {
	if err := l.lock(ctx); err != nil {
		return false, err
	}
	defer l.unlock()
	settings, err := l.read()
	if err != nil {
		return false, err
	}
	now, err := withFiles(settings)
	if err != nil {
		return false, err
	}
	if reflect.DeepEqual(now, l.wanted) {
		return false, nil
	}
	old := l.cloud.Load()
	if old == nil {
		l.wanted, l.failed = now, nil
		return true, nil
	}
	if _, err := l.login(ctx, now); err != nil {
		return false, err
	}
	l.wanted = now
	old.Close() // requests in flight continue; only idle connections close
	return true, nil
}

// login logs in and stores the result for all callers. The caller holds the lock.
func (l *Live) login(ctx context.Context, with reading) (*Cloud, error) {
	c, err := Connect(ctx, with.settings, l.options.Options)
	switch {
	case err == nil:
		c.successor = l.after
		l.failed = nil
		l.cloud.Store(c)
	case ctx.Err() == nil: // a caller that gave up says nothing about the cloud
		l.failed, l.since = err, time.Now()
	}
	return c, err
}

// after returns the cloud that replaces one whose credentials were refused, if the configuration changed meanwhile.
func (l *Live) after(ctx context.Context, refused *Cloud) (*Cloud, bool) {
	if now := l.cloud.Load(); now != refused {
		return now, true
	}
	if l.options.Refused != nil {
		l.options.Refused(ctx)
	} else {
		_, _ = l.Reload(ctx) // the caller already has the error of the refused request
	}
	now := l.cloud.Load()
	return now, now != refused
}

func (l *Live) lock(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errorf(ErrUnreachable, "not logged in yet: %w", ctx.Err())
	}
}

func (l *Live) unlock() { <-l.busy }
