package cloud

import (
	"context"
	"os"
	"reflect"
	"sync/atomic"
	"time"
)

// Live is a cloud whose settings may change while it is in use: credentials, authorities, region. Whoever has got a *Cloud from it
// goes on with that; whoever asks again gets the latest one that could be logged in to.
type Live struct {
	read    func() (Settings, error)
	options LiveOptions
	cloud   atomic.Pointer[Cloud] // nil until the first login

	// busy is the lock of what follows and of every login. A channel, so that who waits for another's login leaves with its own
	// context.
	busy   chan struct{}
	wanted reading
	failed error // of the last login, while there is no cloud
	since  time.Time
}

// LiveOptions are Options and one more.
type LiveOptions struct {
	Options
	// Refused is called when the cloud refuses credentials that it took before, before the caller's request is given up. It should
	// reload what it is responsible for; nil reloads this cloud alone.
	Refused func(ctx context.Context)
}

// reading is everything that decides how to log in: the settings and the content of the files they name.
type reading struct {
	settings Settings
	files    map[string]string // content of the CA, certificate and key files
}

// NewLive reads the settings for the first time; it does not log in. Errors are read's.
func NewLive(read func() (Settings, error), o LiveOptions) (*Live, error) {
	l := &Live{read: read, options: o, busy: make(chan struct{}, 1)}
	settings, err := read()
	if err != nil {
		return nil, err
	}
	l.wanted, _ = withFiles(settings) // a CA that is not there yet is the login's error
	return l, nil
}

// withFiles reads the files that settings name. Where one cannot be read, the rest is given all the same. Errors: ErrBadFile.
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

// Current implements Current: it logs in when it is first asked and keeps the login; a failed one is tried again for a later
// caller.
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

// Reload reads the settings again. If they are others, it logs in with them, and only if that succeeds they replace the ones in
// use: a broken file or a credential that is refused leaves the cloud as it is. Before the first login there is nothing to keep,
// and whatever can be read is what the next caller logs in with. Errors: read's and Connect's.
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
	old.Close() // what is under way goes on; only connections that nobody uses are dropped
	return true, nil
}

// login logs in and makes the result the one that callers get. The caller holds the lock.
func (l *Live) login(ctx context.Context, with reading) (*Cloud, error) {
	c, err := Connect(ctx, with.settings, l.options.Options)
	switch {
	case err == nil:
		c.successor = l.after
		l.failed = nil
		l.cloud.Store(c)
	case ctx.Err() == nil: // an impatient caller's failure is not the cloud's
		l.failed, l.since = err, time.Now()
	}
	return c, err
}

// after gives the cloud that replaces one whose credentials are refused, if what is configured has changed meanwhile.
func (l *Live) after(ctx context.Context, refused *Cloud) (*Cloud, bool) {
	if now := l.cloud.Load(); now != refused {
		return now, true
	}
	if l.options.Refused != nil {
		l.options.Refused(ctx)
	} else {
		_, _ = l.Reload(ctx) // whoever was refused has an error to tell already
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
