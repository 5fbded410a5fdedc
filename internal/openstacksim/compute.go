package openstacksim

import (
	"net/http"
	"strings"
)

var serverRoutes = []route{
	{"GET", "servers", 0, func(s *Sim, c *call) reply { return s.listServers(c, false) }},
	{"GET", "servers/detail", 0, func(s *Sim, c *call) reply { return s.listServers(c, true) }},
	{"GET", "servers/{id}", 0, show("server", func(s *Sim, c *call) any { return s.visibleServer(c, c.vars["id"]).view(c, true) })},
	{"DELETE", "servers/{id}", 0, (*Sim).deleteServer},
	{"POST", "servers/{id}/action", 0, (*Sim).serverAction},
	{"PUT", "servers/{id}/tags", 26, (*Sim).replaceTags},
	{"GET", "servers/{id}/os-volume_attachments", 0, (*Sim).listServerAttachments},
	{"POST", "servers/{id}/os-volume_attachments", 0, (*Sim).attach},
	{"GET", "servers/{id}/os-volume_attachments/{volume}", 0, (*Sim).showServerAttachment},
	{"DELETE", "servers/{id}/os-volume_attachments/{volume}", 0, (*Sim).detach},
	{"GET", "os-availability-zone", 0, show("availabilityZoneInfo", func(s *Sim, _ *call) any {
		return each(s.serverZones, func(z zone) obj { return append(z.view(), pair{"hosts", nil}) })
	})},
	{"GET", "os-availability-zone/detail", 0, (*Sim).detailServerZones},
	{"GET", "limits", 0, (*Sim).serverLimits},
}

func (s *Sim) serveCompute(c *call) reply {
	switch strings.TrimSuffix(c.path, "/") {
	case "":
		return reply{
			status: http.StatusOK, header: noRequestID(),
			body: obj{{"versions", []obj{s.computeVersion(c, "v2.0"), s.computeVersion(c, "v2.1")}}},
		}
	case "/v2":
		return reply{status: http.StatusOK, body: obj{{"version", s.computeVersionDetail(c, "v2.0")}}}
	case "/v2.1":
		if refusal := s.computeVersioned(c); refusal != nil {
			return *refusal
		}
		return reply{status: http.StatusOK, body: obj{{"version", s.computeVersionDetail(c, "v2.1")}}}
	}
	rest, ok := strings.CutPrefix(c.path, "/v2.1/")
	if !ok {
		return s.computeChoices(c)
	}
	if refusal := s.authenticate(c, s.config.ComputeServiceType); refusal != nil {
		return *refusal
	}
	if c.token.project == nil {
		return fault(http.StatusForbidden, badRequestMessage)
	}
	if refusal := s.computeVersioned(c); refusal != nil {
		return *refusal
	}
	rest = strings.TrimSuffix(rest, "/")
	if first, after, _ := strings.Cut(rest, "/"); isUUID(first) && after != "" {
		if first != c.token.project.ID {
			return fault(http.StatusBadRequest, "Malformed request URL: URL's project_id '"+first+"' doesn't match Context's project_id '"+c.token.project.ID+"'")
		}
		rest = after
	}
	r := s.dispatch(c, serverRoutes, rest)
	if c.echo == "" {
		delete(r.header, "X-Compute-Request-Id") // Nova, unlike Cinder, sends the request ID also if no route matches
	}
	return r
}

// computeVersioned reads the microversion for Nova, from the common header or Nova's older header.
func (s *Sim) computeVersioned(c *call) *reply {
	asked, ok := askedVersion(c.Header, "compute")
	if !ok || asked == "" {
		asked = c.Header.Get("X-OpenStack-Nova-API-Version")
	}
	return c.versioned("compute", 2, 1, s.computeMinor(), asked)
}

// computeChoices is the reply of Nova to a path outside of every version.
func (s *Sim) computeChoices(c *call) reply {
	var choices []obj
	for _, name := range []string{"v2.0", "v2.1"} {
		v := s.computeVersionDetail(c, name)
		short := strings.TrimSuffix(name, ".0")
		choices = append(choices, obj{v[0], v[1], {"links", []obj{link("self", c.base(compute)+"/"+short+c.path)}}, v[6]})
	}
	return reply{status: http.StatusMultipleChoices, header: noRequestID(), body: obj{{"choices", choices}}}
}

// noRequestID removes the request IDs from replies that Nova sends before it assigns one.
func noRequestID() http.Header {
	return http.Header{"X-Openstack-Request-Id": nil, "X-Compute-Request-Id": nil}
}
