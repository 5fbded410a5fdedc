package cloud

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// place says which cloud a login is for. The driver takes an HTTP 404 for the end of an object, so it must not ask another cloud than before.
type place struct {
	project, region string
	endpoints       map[string]string // of the needed services, as the catalog names them; a service may move
}

// place settles project, region and endpoints of a login, for all services together. Errors: ErrNoService where the catalog lacks a service,
// ErrOtherCloud where the services are of two regions, or the project is not the expected one.
func (c *Cloud) place(needed []string) (place, error) {
	p := place{project: c.projectID, region: c.settings.Region, endpoints: map[string]string{}}
	if want := c.settings.ExpectedProject; want != "" && !sameID(want, c.projectID) {
		return p, errorf(ErrOtherCloud, "cloud %s: the credential is for project %s, but cloud.conf expects project %s (tenant-id). Every volume would seem to be gone. Use a credential of the expected project",
			c.settings.Name, c.projectID, want)
	}
	first := ""
	for _, service := range needed {
		address, region, ok := c.catalogEndpoint(service)
		if !ok {
			return p, c.noService(service)
		}
		p.endpoints[service] = address
		switch {
		case region == "": // an override outside of the catalog
		case p.region == "":
			p.region, first = region, service
		case region != p.region:
			return p, errorf(ErrOtherCloud, "cloud %s: %s is of region %s, and %s of region %s. Set the region in cloud.conf or clouds.yaml, and remove endpoints that are set by hand",
				c.settings.Name, service, region, cmp.Or(first, "the configuration"), p.region)
		}
	}
	return p, nil
}

// CheckPlace returns what a login that needs these services would fail with. Errors: ErrNoService, ErrOtherCloud.
func (c *Cloud) CheckPlace(services ...string) error {
	_, err := c.place(services)
	return err
}

// check returns ErrOtherCloud unless p is the same cloud as known: the same project in the same region. Endpoints may differ.
func (p place) check(known place, name string) error {
	what, before, now := "", "", ""
	switch {
	case !sameID(p.project, known.project):
		what, before, now = "project", known.project, p.project
	case p.region != known.region:
		what, before, now = "region", known.region, p.region
	default:
		return nil
	}
	return errorf(ErrOtherCloud, "cloud %s: the login is for %s %s, but the driver has worked in %s %s since it started. Every volume would seem to be gone. If you mean this change, restart the driver; else correct the credential",
		name, what, now, what, before)
}

// sameID compares project IDs: some tools write them with dashes or in capitals.
func sameID(a, b string) bool {
	plain := func(id string) string { return strings.ToLower(strings.ReplaceAll(id, "-", "")) }
	return plain(a) == plain(b)
}

// catalogEndpoint returns the URL of a service before any request, and its region. The region is empty for a URL that is set by hand and is of no
// region of the catalog.
func (c *Cloud) catalogEndpoint(service string) (address, region string, ok bool) {
	known := services[service]
	if known.aliases == nil {
		known.aliases = []string{service}
	}
	if override, set := c.override(known.aliases); set {
		return override, c.regionOf(override), true
	}
	for _, alias := range known.aliases {
		for _, e := range c.catalog {
			have := versionIn(e.URL)
			if e.Type == alias && (known.versions == nil || have == "" || service == "identity" || slices.Contains(known.versions, have)) {
				return e.URL, e.region, true
			}
		}
	}
	return "", "", false
}

// regionOf returns the region of the catalog endpoint with the host and the beginning of the path of an address.
func (c *Cloud) regionOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	for _, e := range c.everywhere {
		other, err := url.Parse(e.URL)
		if err == nil && other.Host == u.Host && strings.HasPrefix(slash(other.Path), slash(u.Path)) {
			return e.region
		}
	}
	return ""
}
