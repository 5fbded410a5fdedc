// Package inspect reads what a cloud offers: an Inventory of facts. Every request is a GET, and Calls lists them all. Each fact
// says whether it is known, denied, unsupported or failed. A request that fails changes its own fact and no other.
//
// It sends only requests whose answer is the same for every member of a project. An administrator sees more in some answers, such
// as the hidden extra specs of a type. Inspect drops the rest, so that decisions do not depend on the user.
package inspect

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Calls is every request that Inspect can send besides those of logging in.
var Calls = []cloud.Call{
	{Service: compute, Method: "GET", Path: "/"},
	{Service: blockStorage, Method: "GET", Path: "/"},
	{Service: compute, Method: "GET", Path: "/os-availability-zone"},
	{Service: blockStorage, Method: "GET", Path: "/os-availability-zone"},
	{Service: blockStorage, Method: "GET", Path: "/types"},
	{Service: blockStorage, Method: "GET", Path: "/types/{id}/extra_specs"},
	{Service: blockStorage, Method: "GET", Path: "/types/{id}/encryption"},
	{Service: blockStorage, Method: "GET", Path: "/types/default"},
	{Service: blockStorage, Method: "GET", Path: "/limits"},
	{Service: blockStorage, Method: "GET", Path: "/os-quota-sets/{project}"},
	{Service: blockStorage, Method: "GET", Path: "/group_types", Microversion: groupTypesMicroversion},
	{Service: blockStorage, Method: "GET", Path: "/backups"},
	{Service: blockStorage, Method: "GET", Path: "/os-services"},
}

const (
	compute      = "compute"
	blockStorage = "block-storage"
	identity     = "identity"
)

// parallel limits the requests in progress: enough that all independent ones are sent at once, too few for a rate limit.
const parallel = 12

// Steps is how often Inspect calls Progress.
const Steps = 9

// Progress is called with the name of each part that has been read. Calls come from several goroutines, one at a time. Nil is fine.
type Progress func(done string)

// Inspect reads the inventory of one project in one region. Its error is the context's: everything else is a fact's.
func Inspect(ctx context.Context, c *cloud.Cloud, progress Progress) (v1alpha1.Inventory, error) {
	inv := v1alpha1.Inventory{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.KindInventory,
		Cloud:      v1alpha1.Cloud{AuthURL: authURL(c), Region: c.Region(), ProjectID: c.ProjectID()},
	}
	a := newAsker(c)
	var lock sync.Mutex
	var group sync.WaitGroup
	collect := func(what string, read func()) {
		group.Go(func() {
			read()
			if progress != nil {
				lock.Lock()
				defer lock.Unlock()
				progress(what)
			}
		})
	}
	collect("services", func() { inv.Services = a.services(ctx) })
	collect("compute zones", func() { inv.Zones.Compute = a.zones(ctx, compute) })
	collect("volume zones", func() { inv.Zones.Volume = a.zones(ctx, blockStorage) })
	collect("volume types", func() { inv.VolumeTypes = a.volumeTypes(ctx) })
	collect("default volume type", func() { inv.DefaultVolumeType = a.defaultType(ctx) })
	collect("limits", func() { inv.Limits = a.limits(ctx) })
	collect("quota", func() { inv.Quota = a.quota(ctx) })
	collect("group types", func() { inv.GroupTypes = a.groupTypes(ctx) })
	collect("backups", func() { inv.Backup = a.backup(ctx) })
	group.Wait()
	if err := ctx.Err(); err != nil {
		return inv, fmt.Errorf("the inspection of cloud %s stopped before its end: %w%s", c.Name(), context.Cause(ctx), a.waitedFor())
	}
	return inv, nil
}

// authURL is the address of Keystone as the catalog gives it, in one spelling. So inventories are the same even if people spell it
// differently in their clouds.yaml.
func authURL(c *cloud.Cloud) string {
	u := c.AuthURL()
	for _, e := range c.Catalog() {
		if e.Type == identity {
			u = e.URL
			break
		}
	}
	return strings.TrimSuffix(strings.TrimRight(u, "/"), "/v3") + "/v3"
}

// endpoint is a URL without the project's id, and its port.
func endpoint(rawURL, projectID string) (string, int) {
	bare := strings.TrimRight(rawURL, "/")
	bare = strings.TrimSuffix(strings.TrimSuffix(bare, "/"+projectID), "/AUTH_"+projectID)
	u, err := url.Parse(bare)
	if err != nil {
		return bare, 0
	}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return bare, port
	}
	if u.Scheme == "http" {
		return bare, 80
	}
	return bare, 443
}

// canonical is the service type's official name for the aliases that Cinder goes by in catalogs.
func canonical(serviceType string) string {
	if slices.Contains([]string{"volumev3", "block-store", "volume"}, serviceType) {
		return blockStorage
	}
	return serviceType
}
