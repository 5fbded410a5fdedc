package cloud

import (
	"context"
	"os"
	"reflect"
	"sync/atomic"
	"time"
)

// Live is a cloud whose settings may change while it is in use: credentials, certificate authorities, addresses of services. It stays the cloud
// of the first login: the same project in the same region (place.go). A *Cloud that a caller already has stays as it is. Current returns the
// latest one whose login succeeded.
type Live struct {
	read    func() (Settings, error)
	options LiveOptions
	cloud   atomic.Pointer[Cloud] // nil until the first login

	// busy is the lock of the fields below and of every login. It is a channel, so a caller that waits for a login of another
	// caller can stop when its own context ends.
	busy    chan struct{}
	wanted  reading
	known   *place // of the first login
	failed  error  // of the last login, while there is no cloud
	since   time.Time
	tried   reading   // by the last login
	refused refusal   // of tried
	looked  time.Time // when Keystone was last asked for the addresses of services
}

// LiveOptions are Options and one more.
type LiveOptions struct {
	Options
	// Refused runs when the cloud refuses credentials that it accepted before, and before the request of the caller fails. It
	// should reload the settings. If it is nil, Live reloads its own.
	Refused func(ctx context.Context)
	// Services are the service types that a login must have; one without them is refused.
	Services []string
	// LoggedIn runs with each login that callers get from now on. It must not wait for one.
	LoggedIn func(*Cloud)
	// Moved runs after the catalog has named another address for one of them.
	Moved func(service, address string)
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

// Reload reads the settings again. If they changed, it logs in with them, and the new login replaces the one in use. Requests in flight continue.
// A broken file, a refused credential or another cloud leaves everything as it is. Before the first login there is nothing to keep, so the next
// caller logs in with the new settings. It ends after a minute, also where a cloud sends an answer byte by byte: the settings of other clouds wait.
// Errors: those of read and Connect, ErrNoService, ErrOtherCloud.
func (l *Live) Reload(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if err := l.lock(ctx); err != nil {
		return false, err
	}
	defer l.unlock()
	settings, err := l.read()
	if err != nil {
		return false, err
	}
	now, err := withFiles(settings)
	if err != nil || reflect.DeepEqual(now, l.wanted) {
		return false, err
	}
	if l.cloud.Load() != nil {
		next, _, err := l.connect(ctx, now)
		for i := 0; err == nil && i < len(l.options.Services); i++ { // the login in use works, so the new one has to prove that it does
			_, err = next.endpoints.of(ctx, l.options.Services[i])
		}
		if err != nil {
			return false, err
		}
		l.replace(next)
	}
	l.wanted, l.failed = now, nil
	return true, nil
}

// replace stores the latest login. The caller holds the lock.
func (l *Live) replace(next *Cloud) {
	if old := l.cloud.Swap(next); old != nil {
		old.Close() // only idle connections close
	}
	l.loggedIn(next)
}

func (l *Live) loggedIn(c *Cloud) {
	if l.options.LoggedIn != nil {
		l.options.LoggedIn(c)
	}
}

// login logs in for the first time and stores the result for all callers. The caller holds the lock.
func (l *Live) login(ctx context.Context, with reading) (*Cloud, error) {
	c, at, err := l.connect(ctx, with)
	switch {
	case err == nil:
		l.failed, l.known = nil, &at
		l.replace(c)
	case ctx.Err() == nil: // a caller that gave up says nothing about the cloud
		l.failed, l.since = err, time.Now()
	}
	return c, err
}

// connect logs in, and refuses a login that is not for the known cloud, or lacks a service. The caller holds the lock.
func (l *Live) connect(ctx context.Context, with reading) (*Cloud, place, error) {
	if !reflect.DeepEqual(with, l.tried) {
		l.tried, l.refused = with, refusal{}
	}
	var c *Cloud
	err := l.refused.try(func() (err error) {
		c, err = Connect(ctx, with.settings, l.options.Options)
		return err
	})
	if err != nil {
		return nil, place{}, err
	}
	at, err := c.place(l.options.Services)
	if err == nil && l.known != nil {
		err = at.check(*l.known, with.settings.Name)
	}
	if err != nil {
		c.Close()
		return nil, place{}, err
	}
	c.live = l
	return c, at, nil
}

// relocatePause is the shortest time between two questions for the addresses of services. In an outage each costs Keystone one login.
const relocatePause = 30 * time.Second

// relocateTimeout limits such a question: the caller has a request to end.
const relocateTimeout = 10 * time.Second

// relocate asks Keystone for the addresses of the services, unless it was asked a short time ago or another caller logs in. It returns the cloud
// that replaces the failed one, if the addresses differ.
func (l *Live) relocate(ctx context.Context, failed *Cloud) (*Cloud, bool) {
	select {
	case l.busy <- struct{}{}:
		defer l.unlock()
	default:
		return nil, false
	}
	now := l.cloud.Load()
	if now != failed {
		return now, !l.sameEndpoints(now, failed)
	}
	if time.Since(l.looked) < relocatePause {
		return nil, false
	}
	l.looked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, relocateTimeout)
	defer cancel()
	next, _, err := l.connect(ctx, l.wanted)
	if err != nil {
		return nil, false // the caller has the error of the service
	}
	if l.sameEndpoints(next, failed) {
		next.Close()
		return nil, false
	}
	l.replace(next)
	l.reportMoves(failed, next)
	return next, true
}

// renewed takes the catalog of a renewed token, if a service has another address there. A catalog that lacks a service, or is of another region,
// changes nothing. A reload that is in progress comes first.
func (l *Live) renewed(next *Cloud) {
	old := l.cloud.Load()
	if old == nil || old.provider != next.provider || l.sameEndpoints(old, next) {
		return
	}
	at, err := next.place(l.options.Services)
	if err != nil || l.known == nil || at.check(*l.known, next.settings.Name) != nil {
		return
	}
	if l.cloud.CompareAndSwap(old, next) {
		l.loggedIn(next)
		l.reportMoves(old, next)
	}
}

func (l *Live) sameEndpoints(a, b *Cloud) bool {
	for _, service := range l.options.Services {
		before, _, _ := a.catalogEndpoint(service)
		if now, _, _ := b.catalogEndpoint(service); now != before {
			return false
		}
	}
	return true
}

func (l *Live) reportMoves(old, next *Cloud) {
	for _, service := range l.options.Services {
		before, _, _ := old.catalogEndpoint(service)
		if now, _, _ := next.catalogEndpoint(service); now != before && l.options.Moved != nil {
			l.options.Moved(service, PlainURL(now))
		}
	}
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
