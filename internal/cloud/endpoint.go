package cloud

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// knownService describes a service before any request.
type knownService struct {
	aliases  []string
	versions []string // last segment of the versioned URL, best first
	project  bool     // the versioned URL ends in the project ID
}

// The names of a service in catalogs, best first (OpenStack Service Types Authority), and the API versions that this project
// uses.
var services = map[string]knownService{
	"block-storage": {aliases: []string{"block-storage", "volumev3", "block-store", "volume"}, versions: []string{"v3"}, project: true},
	"compute":       {aliases: []string{"compute"}, versions: []string{"v2.1", "v2"}},
	"identity":      {aliases: []string{"identity"}, versions: []string{"v3"}},
}

var versionSegment = regexp.MustCompile(`^v\d+(\.\d+)?$`)

// discoveryTimeout limits the one GET that reads the versions of an unversioned endpoint, if the caller has no context.
const discoveryTimeout = 30 * time.Second

// endpoints caches versioned URLs. The channel is its lock: a caller that waits for it can stop when its context ends, which a
// mutex does not allow.
type endpoints struct {
	cloud *Cloud
	lock  chan struct{}
	found map[string]string // service type -> URL that ends in /
}

func newEndpoints(c *Cloud) *endpoints {
	return &endpoints{cloud: c, lock: make(chan struct{}, 1), found: map[string]string{}}
}

// Client makes a client of one service at one microversion; "" means the base version of the service. Every call returns a new
// client, which the caller may change. For an endpoint without a version, the first call costs one request. Errors: ErrNoService,
// ErrUnreachable.
func (c *Cloud) Client(serviceType, microversion string) (*gophercloud.ServiceClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	return c.ClientContext(ctx, serviceType, microversion)
}

// ClientContext is Client with a context for that one request.
func (c *Cloud) ClientContext(ctx context.Context, serviceType, microversion string) (*gophercloud.ServiceClient, error) {
	endpoint, err := c.endpoints.of(ctx, serviceType)
	if err != nil {
		return nil, err
	}
	return &gophercloud.ServiceClient{ProviderClient: c.provider, Endpoint: endpoint, Type: serviceType, Microversion: microversion}, nil
}

// Send sends a request of one of its clients. Its errors are RequestErrors, so nothing but this package has those of gophercloud.
func (c *Cloud) Send(ctx context.Context, client *gophercloud.ServiceClient, method, address string, o *gophercloud.RequestOpts) (*http.Response, error) {
	var sent sentTokens
	resp, err := client.Request(sent.watch(ctx), method, address, o)
	return resp, c.settings.failure(err, sent.list()...)
}

// Read sends a GET with Send, and cleans the texts of the answer.
func (c *Cloud) Read(ctx context.Context, client *gophercloud.ServiceClient, address string, into any, ok ...int) error {
	resp, err := c.Send(ctx, client, http.MethodGet, address, &gophercloud.RequestOpts{JSONResponse: into, OkCodes: ok})
	if resp != nil {
		resp.Body.Close()
	}
	cleaner{tokensOf(resp)}.clean(into)
	return err
}

func (e *endpoints) of(ctx context.Context, serviceType string) (string, error) {
	select {
	case e.lock <- struct{}{}:
		defer func() { <-e.lock }()
	case <-ctx.Done():
		return "", errorf(ErrUnreachable, "service %s of cloud %s: %w", serviceType, e.cloud.settings.Name, ctx.Err())
	}
	if found, ok := e.found[serviceType]; ok {
		return found, nil
	}
	found, err := e.cloud.locate(ctx, serviceType)
	if err == nil {
		e.found[serviceType] = found
	}
	return found, err
}

// locate returns the versioned URL of a service.
func (c *Cloud) locate(ctx context.Context, serviceType string) (string, error) {
	known := services[serviceType]
	if known.aliases == nil {
		known.aliases = []string{serviceType}
	}
	if override, ok := c.override(known.aliases); ok {
		return slash(override), nil
	}
	for _, alias := range known.aliases {
		for _, e := range c.catalog {
			if e.Type != alias {
				continue
			}
			if strings.ContainsAny(e.URL, "?#") { // the paths of requests would go into the query, and the catalog choose another one
				return "", errorf(ErrMisconfigured, "the catalog of cloud %s has an address of service %s with a query: %s", c.settings.Name, serviceType, PlainURL(e.URL))
			}
			have := versionIn(e.URL)
			switch {
			case known.versions == nil, slices.Contains(known.versions, have):
				return slash(e.URL), nil
			case serviceType == "identity":
				return slash(withVersion(e.URL, have, "v3")), nil // a Keystone that issued a v3 token has v3, even if the catalog names v2.0
			case have != "":
				continue // an unsupported version: "volume" is v1 or v2 in old catalogs
			}
			version, err := c.discover(ctx, serviceType, e.URL, known.versions)
			if err != nil {
				return "", err
			}
			u := slash(e.URL) + version + "/"
			if known.project {
				u += c.projectID + "/"
			}
			return u, nil
		}
	}
	return "", c.noService(serviceType)
}

func (c *Cloud) noService(serviceType string) error {
	return errorf(ErrNoService, "the catalog of cloud %s has no %s service for interface %s in region %q", c.settings.Name, serviceType,
		cmp.Or(c.settings.Interface, "public"), c.settings.Region)
}

func (c *Cloud) override(aliases []string) (string, bool) {
	for _, alias := range aliases {
		if u, ok := c.settings.Endpoints[alias]; ok {
			return u, true
		}
	}
	return "", false
}

// discover asks an unversioned endpoint for its versions. It uses only the IDs in the reply: the links often name internal hosts
// of the cloud.
func (c *Cloud) discover(ctx context.Context, serviceType, endpoint string, versions []string) (string, error) {
	var document struct {
		Versions Items[struct {
			ID string `json:"id"`
		}] `json:"versions"`
	}
	var sent sentTokens
	resp, err := c.provider.Request(sent.watch(ctx), http.MethodGet, slash(endpoint), &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK, http.StatusMultipleChoices}, KeepResponseBody: true,
	})
	at := PlainURL(endpoint)
	if err != nil {
		return "", errorf(ErrUnreachable, "cloud %s: cannot read the versions of %s at %s: %w", c.settings.Name, serviceType, at, c.settings.failure(err, sent.list()...))
	}
	defer resp.Body.Close()
	if err := Decode(resp, &document); err != nil {
		kind := ErrMisconfigured
		if ctx.Err() != nil || endedEarly(err) {
			kind = ErrUnreachable
		}
		return "", errorf(kind, "cloud %s: %s at %s does not list its versions: %w", c.settings.Name, serviceType, at, err)
	}
	for _, want := range versions {
		for _, v := range document.Versions {
			if strings.TrimSuffix(v.ID, ".0") == want {
				return want, nil
			}
		}
	}
	return "", errorf(ErrNoService, "cloud %s: %s at %s has none of the versions %s", c.settings.Name, serviceType, at,
		strings.Join(versions, ", "))
}

// versionIn returns the version segment in the path of a URL, or "".
func versionIn(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if versionSegment.MatchString(segment) {
			return segment
		}
	}
	return ""
}

// withVersion replaces the version in an endpoint, or adds one.
func withVersion(endpoint, have, want string) string {
	if have == "" {
		return slash(endpoint) + want
	}
	return strings.Replace(endpoint, "/"+have, "/"+want, 1)
}

func slash(u string) string { return strings.TrimSuffix(u, "/") + "/" }
