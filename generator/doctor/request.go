package doctor

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// get sends one GET to a service of the cloud.
func (c *cloudCheck) get(ctx context.Context, service, microversion, path string, body any) error {
	client, err := c.cloud.ClientContext(ctx, service, microversion)
	if err != nil {
		return err
	}
	if service == "identity" {
		client.MoreHeaders = map[string]string{"X-Subject-Token": client.Token()}
	}
	return c.cloud.Read(ctx, client, client.Endpoint+path, body, http.StatusOK)
}

// probe is a reading request of the driver, sent once to see whether it is allowed.
type probe struct {
	service, microversion, path string
	severity                    Severity // of a refusal
	without                     string   // what the driver cannot do without it
}

// probes have every GET of docs/reference/access-rules.md. Where a rule is for one object (/volumes/*), the list of the same rule stands
// for it (/volumes/detail).
var probes = []probe{
	{"block-storage", "", "volumes/detail?limit=1", Error, "find volumes"},
	{"block-storage", "", "snapshots/detail?limit=1", Error, "find snapshots"},
	{"block-storage", "", "backups/detail?limit=1", Warning, "find backups"},
	{"block-storage", "3.27", "attachments?limit=1", Error, "see where volumes are attached"},
	{"block-storage", "3.27", "attachments/" + nobody, Error, "see where a volume is attached"},
	{"block-storage", "3.5", "messages?limit=1", Warning, "say why Cinder failed to create a volume"},
	{"block-storage", "", "os-availability-zone", Error, "read the volume zones"},
	{"block-storage", "", "types?limit=1", Warning, "find a volume type by its name"},
	{"block-storage", "", "types/default", Warning, "find the default type"},
	{"block-storage", "", "os-quota-sets/{project}", Warning, "report capacity and quota"},
	{"compute", "", "servers/detail?limit=1", Error, "see the servers"},
	{"compute", "", "servers/{server}/os-volume_attachments", Error, "see the volumes of a server"},
}

// nobody is the ID of no object: HTTP 404 then says that the request was allowed.
const nobody = "00000000-0000-0000-0000-000000000000"

// checkReading sends each probe.
func (c *cloudCheck) checkReading(ctx context.Context) {
	server, real := c.anyServer(ctx)
	place := strings.NewReplacer("{project}", url.PathEscape(c.cloud.ProjectID()), "{server}", url.PathEscape(server))
	allowed := 0
	for _, p := range probes {
		if c.probe(ctx, p, place.Replace(p.path)) {
			allowed++
		}
	}
	if allowed == len(probes) {
		c.report.ok("cloud.rights.read", "Cinder and Nova allow the %d reading requests of the driver", allowed)
	}
	if !real {
		c.report.notChecked("whether Nova's policy lets the driver read the volumes of a server", "the project has no server to ask about", "run doctor again when the nodes exist")
	}
}

// anyServer is a server of the project, or an ID that no server has.
func (c *cloudCheck) anyServer(ctx context.Context) (id string, real bool) {
	var body struct {
		Servers cloud.Items[struct {
			ID string `json:"id"`
		}] `json:"servers"`
	}
	if err := c.get(ctx, "compute", "", "servers/detail?limit=1", &body); err != nil || len(body.Servers) == 0 {
		return nobody, false
	}
	return body.Servers[0].ID, true
}

func (c *cloudCheck) probe(ctx context.Context, p probe, path string) bool {
	err := c.get(ctx, p.service, p.microversion, path, nil)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) && (strings.Contains(path, nobody) || strings.HasSuffix(path, "types/default")) {
		return true
	}
	name, _, _ := strings.Cut(path, "?")
	request := "GET /" + name + " of " + p.service
	switch state, reason := inspect.StateOf(err); state {
	case v1alpha1.Known:
		return true
	case v1alpha1.Denied:
		reason, do := c.refusal(reason, "give the user a role that may do so, or add the access rule ("+pages.AccessRules.String()+")")
		c.report.add("cloud.rights.read", p.severity, request+" is refused: "+reason, "the driver cannot "+p.without, do)
	case v1alpha1.Failed:
		c.report.add("cloud.rights.read", p.severity, request+" fails: "+reason, "the driver cannot "+p.without, "try again; if it stays, tell the operator of the cloud")
	case v1alpha1.Unsupported: // the service is missing or too old, which other checks report
	}
	return false
}

// refusal gives the reason of a refused request, and the advice. A service that answers 401 to a fresh token gives no reason. An
// access rule is missing, or its clock says that the token has expired. The token shows whether it can be a rule.
func (c *cloudCheck) refusal(reason, missingRight string) (what, do string) {
	clock := "compare the clocks of the hosts of Keystone, Cinder and Nova: cloud.clock in this report, or timedatectl on each " +
		"(" + pages.ClockIsWrong.String() + ")"
	switch {
	case reason != inspect.RefusedToken:
		return reason, missingRight
	case c.withoutRules:
		return "HTTP 401 with a fresh token", "the credential has no access rules, so none is missing; " + clock
	}
	return "HTTP 401 with a fresh token", "if cloud.access-rules says that the access rule is missing, create a new credential with it (" + pages.AccessRules.String() + "); else " + clock
}
