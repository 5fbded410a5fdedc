package cloud

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// Options is what Connect may be given.
type Options struct {
	// Transport sends the requests; nil means one of NewTransport.
	Transport http.RoundTripper
	// Wrap puts retries, budgets, metrics around the transport; nil means none.
	Wrap func(http.RoundTripper) http.RoundTripper
	// UserAgent tokens stand before gophercloud's own, so that a cloud's operator sees who calls.
	UserAgent []string
}

// Cloud is one cloud that somebody is logged in to. It renews its token by itself and may be used from many goroutines.
type Cloud struct {
	settings  Settings
	provider  *gophercloud.ProviderClient
	transport http.RoundTripper
	projectID string
	catalog   []entry
	endpoints *endpoints
	successor func(ctx context.Context, c *Cloud) (*Cloud, bool) // nil where the settings never change
}

// entry is one endpoint of the catalog, of the interface and region that the settings ask for.
type entry struct {
	CatalogEntry
	region string
}

// CatalogEntry is one endpoint of the service catalog.
type CatalogEntry struct {
	Type string // as the catalog names it: "volumev3", "block-storage", …
	URL  string
}

// loginTimeout bounds a login where the caller's context does not.
const loginTimeout = time.Minute

// Connect logs in. Errors: ErrUnreachable, ErrUnauthorised, ErrMisconfigured, ErrBadFile; with the context's error as cause when
// that came first.
func Connect(ctx context.Context, s Settings, o Options) (*Cloud, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		own, err := NewTransport(s)
		if err != nil {
			return nil, err
		}
		transport = own
	}
	wrapped := transport
	if o.Wrap != nil {
		wrapped = o.Wrap(transport)
	}
	provider, err := openstack.NewClient(s.AuthURL)
	if err != nil {
		return nil, errorf(ErrMisconfigured, "cloud %s: the authentication URL is not a URL", s.Name)
	}
	provider.HTTPClient = http.Client{Transport: wrapped, CheckRedirect: checkRedirect}
	provider.UserAgent.Prepend(o.UserAgent...)
	options := s.authOptions()
	// Straight to v3, without asking Keystone for its versions first: v2 was removed in 2018, and the versions document of a
	// Keystone behind a proxy often names hosts that cannot be reached from outside.
	limited, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if err := openstack.AuthenticateV3(limited, provider, &options, gophercloud.EndpointOpts{}); err != nil {
		return nil, s.loginError(ctx, err)
	}
	c := &Cloud{settings: s, provider: provider, transport: transport}
	if err := c.readToken(); err != nil {
		return nil, err
	}
	c.endpoints = newEndpoints(c)
	return c, nil
}

// readToken takes project and catalog from Keystone's answer.
func (c *Cloud) readToken() error {
	result, ok := c.provider.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if !ok {
		return errorf(ErrMisconfigured, "cloud %s: Keystone's answer holds no token", c.settings.Name)
	}
	project, err := result.ExtractProject()
	if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: Keystone's answer cannot be read: %w", c.settings.Name, err)
	}
	if project == nil || project.ID == "" {
		return errorf(ErrMisconfigured, "cloud %s: the token is for no project; name the project", c.settings.Name)
	}
	c.projectID = Clean(project.ID)
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: Keystone's catalog cannot be read: %w", c.settings.Name, err)
	}
	return c.chooseEndpoints(catalog)
}

// chooseEndpoints keeps the catalog's endpoints of the interface and region asked for.
func (c *Cloud) chooseEndpoints(catalog *tokens.ServiceCatalog) error {
	wanted := strings.TrimSuffix(cmp.Or(c.settings.Interface, "public"), "URL")
	var regions []string
	for _, service := range catalog.Entries {
		for _, e := range service.Endpoints {
			region := Clean(cmp.Or(e.RegionID, e.Region))
			if !slices.Contains(regions, region) && region != "" {
				regions = append(regions, region)
			}
			if e.Interface != wanted || c.settings.Region != "" && c.settings.Region != e.Region && c.settings.Region != e.RegionID {
				continue
			}
			c.catalog = append(c.catalog, entry{CatalogEntry{Type: Clean(service.Type), URL: Clean(e.URL)}, region})
		}
	}
	if c.settings.Region != "" && len(c.catalog) == 0 && !slices.Contains(regions, c.settings.Region) {
		slices.Sort(regions)
		return errorf(ErrMisconfigured, "cloud %s has no region %q; it has %s", c.settings.Name, c.settings.Region, strings.Join(regions, ", "))
	}
	return nil
}

// AuthURL is Keystone's address as configured.
func (c *Cloud) AuthURL() string { return c.settings.AuthURL }

// Name is what people call the cloud; for messages.
func (c *Cloud) Name() string { return c.settings.Name }

// Region is the region configured, else the one of the first endpoint in use.
func (c *Cloud) Region() string {
	if c.settings.Region != "" || len(c.catalog) == 0 {
		return c.settings.Region
	}
	return c.catalog[0].region
}

// ProjectID is the project that the token is for.
func (c *Cloud) ProjectID() string { return c.projectID }

// Catalog lists the endpoints of the interface and region in use, in the catalog's order.
func (c *Cloud) Catalog() []CatalogEntry {
	entries := make([]CatalogEntry, len(c.catalog))
	for i, e := range c.catalog {
		entries[i] = e.CatalogEntry
	}
	return entries
}

// Unencrypted lists the catalog's addresses of the services this project uses that are http, where Keystone's is https.
func (c *Cloud) Unencrypted() []string {
	var all []string
	for _, e := range c.catalog {
		u, err := url.Parse(e.URL)
		used := slices.ContainsFunc(slices.Collect(maps.Values(services)), func(s known) bool { return slices.Contains(s.aliases, e.Type) })
		if err == nil && used && u.Scheme == "http" && strings.HasPrefix(c.settings.AuthURL, "https:") {
			all = append(all, Clean(u.Redacted()))
		}
	}
	return all
}

// Ping asks whether Keystone answers at all; it needs no token. Errors: ErrUnreachable.
func (c *Cloud) Ping(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.settings.AuthURL, http.NoBody)
	if err != nil {
		return errorf(ErrMisconfigured, "cloud %s: the authentication URL is not a URL", c.settings.Name)
	}
	resp, err := c.transport.RoundTrip(request)
	if err != nil {
		return c.settings.loginError(ctx, &url.Error{Err: err})
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // or the connection is not kept
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		return c.settings.refusal(resp.StatusCode, c.settings.redactedURL())
	}
	return nil
}

// Close drops kept connections. The cloud may be used again.
func (c *Cloud) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// loginError says in one sentence why logging in failed. Keystone's own message is kept for 4xx answers only: it tells a wrong
// password from a missing project, and holds nothing that was not asked about.
func (s Settings) loginError(ctx context.Context, err error) error {
	at := s.redactedURL()
	var answer gophercloud.ErrUnexpectedResponseCode
	var network *url.Error
	cause := err
	if errors.As(err, &network) {
		cause = network.Err
	}
	switch {
	case ctx.Err() != nil:
		return errorf(ErrUnreachable, "cloud %s: no answer from Keystone at %s in time: %w", s.Name, at, ctx.Err())
	case errors.As(err, &answer):
		return s.refusal(answer.Actual, at)
	case errors.Is(err, errRedirect):
		return errorf(ErrMisconfigured, "cloud %s: cannot log in at %s: %w; set the authentication URL to the address that answers without a redirect", s.Name, at, cause)
	case network != nil:
		return errorf(ErrUnreachable, "cloud %s: cannot reach Keystone at %s: %w", s.Name, at, cause)
	}
	return errorf(ErrMisconfigured, "cloud %s: what answers at %s is not Keystone v3: %w", s.Name, at, err)
}

func (s Settings) refusal(status int, at string) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errorf(ErrUnauthorised, "cloud %s: Keystone at %s refuses the credentials of %s (HTTP %d); check them, the domains and the project",
			s.Name, at, s.who(), status)
	case status == http.StatusTooManyRequests, status >= 500:
		return errorf(ErrUnreachable, "cloud %s: Keystone at %s answers HTTP %d; try again later", s.Name, at, status)
	}
	return errorf(ErrMisconfigured, "cloud %s: what answers at %s is not Keystone v3 (HTTP %d)", s.Name, at, status)
}
