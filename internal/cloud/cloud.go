package cloud

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// Options are the options of Connect.
type Options struct {
	// Transport sends the requests; nil means one of newTransport.
	Transport http.RoundTripper
	// Observe adds metrics and traces around the transport; nil adds nothing.
	Observe func(http.RoundTripper) http.RoundTripper
	// Wrap adds retries and limits around that, but not for Ping; nil adds nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// UserAgent tokens come before gophercloud's own, so that the operator of a cloud sees the client.
	UserAgent []string
}

// Cloud is a connection to one cloud, logged in. It renews its token by itself. Goroutines may share it.
type Cloud struct {
	settings  Settings
	provider  *gophercloud.ProviderClient
	transport http.RoundTripper
	observed  http.RoundTripper // transport with metrics
	projectID string
	catalog   []entry // of the interface and region in use
	// everywhere has the endpoints of the interface in all regions.
	everywhere []entry
	endpoints  *endpoints
	live       *Live                      // nil if the settings never change
	expires    *atomic.Pointer[time.Time] // of the credential, as Expiry found it last; all tokens of a login share it
}

// entry is one catalog endpoint of the configured interface and region.
type entry struct {
	CatalogEntry
	region string
}

// CatalogEntry is one endpoint of the service catalog.
type CatalogEntry struct {
	Type string // the name in the catalog: "volumev3", "block-storage", …
	URL  string
}

// loginTimeout limits a login if the context of the caller does not.
const loginTimeout = time.Minute

// Connect logs in. Errors: ErrUnreachable, ErrUnauthorised, ErrMisconfigured, ErrBadFile. If the context ended first, its error
// is the cause.
func Connect(ctx context.Context, s Settings, o Options) (*Cloud, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		own, err := newTransport(s)
		if err != nil {
			return nil, err
		}
		transport = own
	}
	observed := transport
	if o.Observe != nil {
		observed = o.Observe(transport)
	}
	wrapped := observed
	if o.Wrap != nil {
		wrapped = o.Wrap(observed)
	}
	provider, err := openstack.NewClient(s.AuthURL)
	if err != nil {
		return nil, errorf(ErrMisconfigured, "cloud %s: the authentication URL is not a URL", s.Name)
	}
	provider.HTTPClient = http.Client{Transport: tokenNoter{wrapped}, CheckRedirect: checkRedirect}
	provider.UserAgent.Prepend(o.UserAgent...)
	options := s.authOptions()
	// Use v3 without a request for the versions: v2 was removed in 2018. The versions document of a Keystone behind a proxy often
	// names hosts that cannot be reached from outside.
	limited, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if err := openstack.AuthenticateV3(limited, provider, &options, gophercloud.EndpointOpts{}); err != nil {
		return nil, s.loginError(ctx, err)
	}
	c := &Cloud{settings: s, provider: provider, transport: transport, observed: observed, expires: new(atomic.Pointer[time.Time])}
	if err := c.readToken(); err != nil {
		return nil, err
	}
	c.endpoints = newEndpoints(c)
	if renew := provider.ReauthFunc; renew != nil {
		var last refusal
		provider.ReauthFunc = func(ctx context.Context) error { // gophercloud runs one at a time
			return last.try(func() error {
				if err := renew(ctx); err != nil {
					return c.expired(c.settings.failure(err))
				}
				return c.renewed()
			})
		}
	}
	return c, nil
}

// ExpiredError is the refusal of a new token after the credential has expired.
type ExpiredError struct {
	At    time.Time
	cause error
}

func (e *ExpiredError) Error() string {
	return "the credential expired at " + e.At.UTC().Format(time.RFC3339) + "; put a new one into the Secret (" + pages.RotateCredentials.String() + "): " + e.cause.Error()
}

func (e *ExpiredError) Unwrap() error { return e.cause }

// expired returns the refusal of a token as ExpiredError, if the time is over that Expiry found.
func (c *Cloud) expired(err error) error {
	if at := c.expires.Load(); at != nil && gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && !time.Now().Before(*at) {
		return &ExpiredError{*at, err}
	}
	return err
}

// renewed checks a renewed token as a login: it must be for the same project. It keeps the catalog of the token, which may name a new address.
func (c *Cloud) renewed() error {
	next := &Cloud{settings: c.settings, provider: c.provider, transport: c.transport, observed: c.observed, live: c.live, expires: c.expires}
	err := next.readToken()
	if err == nil && next.projectID != c.projectID {
		err = errorf(ErrOtherCloud, "cloud %s: the renewed token is for project %s instead of %s", c.settings.Name, next.projectID, c.projectID)
	}
	if err != nil {
		_ = c.provider.SetTokenAndAuthResult(nil) // the next request renews it again
		return err
	}
	if c.live != nil {
		next.endpoints = newEndpoints(next)
		c.live.renewed(next)
	}
	return nil
}

// readToken reads the project and the catalog from the token response.
func (c *Cloud) readToken() error {
	result, ok := c.provider.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if !ok {
		return errorf(ErrMisconfigured, "cloud %s: the reply of Keystone holds no token", c.settings.Name)
	}
	project, err := result.ExtractProject()
	if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: the reply of Keystone cannot be read: %w", c.settings.Name, err)
	}
	if project == nil || project.ID == "" {
		return errorf(ErrMisconfigured, "cloud %s: the token is for no project; configure the project", c.settings.Name)
	}
	c.projectID = Clean(project.ID)
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: the catalog of Keystone cannot be read: %w", c.settings.Name, err)
	}
	return c.chooseEndpoints(catalog)
}

// chooseEndpoints keeps the catalog endpoints of the configured interface and region.
func (c *Cloud) chooseEndpoints(catalog *tokens.ServiceCatalog) error {
	wanted := strings.TrimSuffix(cmp.Or(c.settings.Interface, "public"), "URL")
	regions := map[string]bool{}
	for _, service := range catalog.Entries {
		for _, e := range service.Endpoints {
			region := Clean(cmp.Or(e.RegionID, e.Region))
			if region != "" {
				regions[region] = true
			}
			if e.Interface != wanted {
				continue
			}
			its := entry{CatalogEntry{Type: Clean(service.Type), URL: Clean(e.URL)}, region}
			c.everywhere = append(c.everywhere, its)
			if c.settings.Region != "" && c.settings.Region != e.Region && c.settings.Region != e.RegionID {
				continue
			}
			its.region = cmp.Or(c.settings.Region, region)
			c.catalog = append(c.catalog, its)
		}
	}
	if c.settings.Region != "" && len(c.catalog) == 0 && !regions[c.settings.Region] {
		return errorf(ErrMisconfigured, "cloud %s has no region %q; it has %s", c.settings.Name, c.settings.Region, strings.Join(slices.Sorted(maps.Keys(regions)), ", "))
	}
	return nil
}

// AuthURL is the configured URL of Keystone, without a user and a password: logs and bundles have it.
func (c *Cloud) AuthURL() string { return c.settings.plainURL() }

// Name is the configured name of the cloud, for messages.
func (c *Cloud) Name() string { return c.settings.Name }

// Region is the configured region, else that of the first endpoint in use.
func (c *Cloud) Region() string {
	if c.settings.Region != "" || len(c.catalog) == 0 {
		return c.settings.Region
	}
	return c.catalog[0].region
}

// ProjectID is the project that the token is for.
func (c *Cloud) ProjectID() string { return c.projectID }

// Catalog lists the endpoints of the interface and region in use, in the order of the catalog, without logins.
func (c *Cloud) Catalog() []CatalogEntry {
	entries := make([]CatalogEntry, len(c.catalog))
	for i, e := range c.catalog {
		entries[i] = CatalogEntry{e.Type, PlainURL(e.URL)}
	}
	return entries
}

// Unencrypted lists the http URLs that this project uses from the catalog, if Keystone has https. Settings.Weaknesses has those that are set by hand.
func (c *Cloud) Unencrypted() []string {
	var all []string
	keystone, err := url.Parse(c.settings.AuthURL)
	if err != nil || keystone.Scheme != "https" {
		return nil
	}
	for service, known := range services {
		address, _, _ := c.catalogEndpoint(service)
		_, byHand := c.override(known.aliases)
		if u, err := url.Parse(address); err == nil && !byHand && u.Scheme == "http" {
			all = append(all, PlainURL(address))
		}
	}
	slices.Sort(all)
	return all
}

// Ping checks that Keystone responds; it needs no token. Errors: ErrUnreachable.
func (c *Cloud) Ping(ctx context.Context) error {
	status, err := ping(ctx, c.observed, c.settings.AuthURL)
	if err != nil {
		return c.settings.loginError(ctx, err)
	}
	if status >= http.StatusInternalServerError {
		return c.settings.refusal(status, c.settings.plainURL())
	}
	return nil
}

// Close closes idle connections. The cloud may be used again.
func (c *Cloud) Close() {
	if c == nil {
		return
	}
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// loginError explains a failed login in one sentence. The status of a 4xx reply distinguishes a wrong password from a wrong URL.
func (s Settings) loginError(ctx context.Context, err error) error {
	at := s.plainURL()
	var answer gophercloud.ErrUnexpectedResponseCode
	var network *url.Error
	cause := s.failure(err)
	switch {
	case ctx.Err() != nil:
		return errorf(ErrUnreachable, "cloud %s: no reply from Keystone at %s in time: %w", s.Name, at, ctx.Err())
	case endedEarly(err):
		return errorf(ErrUnreachable, "cloud %s: no whole reply from Keystone at %s: %w", s.Name, at, cause)
	case errors.As(err, &answer):
		return s.refusal(answer.Actual, at)
	case errors.Is(err, errRedirect):
		return errorf(ErrMisconfigured, "cloud %s: cannot log in at %s: %w; set an authentication URL that does not redirect", s.Name, at, cause)
	case errors.As(err, &network) && errors.As(err, new(x509.UnknownAuthorityError)):
		return errorf(ErrUnreachable, "cloud %s: cannot reach Keystone at %s: %w; %s", s.Name, at, cause, s.caHint())
	case network != nil:
		return errorf(ErrUnreachable, "cloud %s: cannot reach Keystone at %s: %w", s.Name, at, cause)
	}
	return errorf(ErrMisconfigured, "cloud %s: the server at %s is not Keystone v3: %w", s.Name, at, cause)
}

// endedEarly reports whether a reply did not end, so it says nothing about the settings.
func endedEarly(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (s Settings) refusal(status int, at string) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errorf(ErrUnauthorised, "cloud %s: Keystone at %s refuses the credentials of %s (HTTP %d); check them, the domains and the project",
			s.Name, at, s.who(), status)
	case status == http.StatusTooManyRequests, status >= 500:
		return serverError("cloud %s: Keystone at %s returns HTTP %d; try again later", s.Name, at, status)
	}
	return errorf(ErrMisconfigured, "cloud %s: the server at %s is not Keystone v3 (HTTP %d)", s.Name, at, status)
}
