package openstacksim

import (
	"net/http"
	"strings"
)

// volumeRoutes are the requests of Cinder with the microversion that introduced each.
var volumeRoutes = []route{
	{"POST", "volumes", 0, (*Sim).createVolume},
	{"GET", "volumes", 0, func(s *Sim, c *call) reply { return s.listVolumes(c, false) }},
	{"GET", "volumes/detail", 0, func(s *Sim, c *call) reply { return s.listVolumes(c, true) }},
	{"GET", "volumes/summary", 12, (*Sim).summarizeVolumes},
	{"GET", "volumes/{id}", 0, show("volume", func(s *Sim, c *call) any { return s.visible(c, c.vars["id"]).view(s, c, shown) })},
	{"PUT", "volumes/{id}", 0, (*Sim).updateVolume},
	{"DELETE", "volumes/{id}", 0, (*Sim).deleteVolume},
	{"POST", "volumes/{id}/action", 0, (*Sim).volumeAction},
	{"GET", "volumes/{id}/metadata", 0, show("metadata", func(s *Sim, c *call) any { return s.visible(c, c.vars["id"]).metadata })},
	{"POST", "volumes/{id}/metadata", 0, (*Sim).mergeMetadata},
	{"PUT", "volumes/{id}/metadata", 0, (*Sim).replaceMetadata},
	{"GET", "volumes/{id}/metadata/{key}", 0, show("meta", func(s *Sim, c *call) any { return obj{{keyInPath(c), s.item(c).metadata[keyInPath(c)]}} })},
	{"PUT", "volumes/{id}/metadata/{key}", 0, (*Sim).setMetadataItem},
	{"DELETE", "volumes/{id}/metadata/{key}", 0, (*Sim).deleteMetadataItem},

	{"GET", "types", 0, (*Sim).listTypes},
	{"POST", "types", 0, (*Sim).createType},
	{"GET", "types/{id}", 0, (*Sim).showType},
	{"PUT", "types/{id}", 0, (*Sim).updateType},
	{"DELETE", "types/{id}", 0, (*Sim).deleteType},
	{"GET", "types/{id}/extra_specs", 0, (*Sim).showSpecs},
	{"POST", "types/{id}/extra_specs", 0, (*Sim).setSpecs},
	{"GET", "types/{id}/extra_specs/{key}", 0, (*Sim).showSpec},
	{"DELETE", "types/{id}/extra_specs/{key}", 0, (*Sim).deleteSpec},
	{"GET", "types/{id}/encryption", 0, (*Sim).showEncryption},

	{"POST", "snapshots", 0, (*Sim).createSnapshot},
	{"GET", "snapshots", 0, func(s *Sim, c *call) reply { return s.listSnapshots(c, false) }},
	{"GET", "snapshots/detail", 0, func(s *Sim, c *call) reply { return s.listSnapshots(c, true) }},
	{"GET", "snapshots/{id}", 0, show("snapshot", func(s *Sim, c *call) any { return s.visibleSnapshot(c, c.vars["id"]).view(c, true, true) })},
	{"DELETE", "snapshots/{id}", 0, (*Sim).deleteSnapshot},
	{"POST", "snapshots/{id}/action", 0, (*Sim).snapshotAction},

	{"POST", "backups", 0, (*Sim).createBackup},
	{"GET", "backups", 0, func(s *Sim, c *call) reply { return s.listBackups(c, false) }},
	{"GET", "backups/detail", 0, func(s *Sim, c *call) reply { return s.listBackups(c, true) }},
	{"GET", "backups/{id}", 0, show("backup", func(s *Sim, c *call) any { return s.viewBackup(c, s.visibleBackup(c, c.vars["id"])) })},
	{"DELETE", "backups/{id}", 0, (*Sim).deleteBackup},
	{"POST", "backups/{id}/action", 0, (*Sim).backupAction},
	{"POST", "backups/{id}/restore", 0, (*Sim).restoreBackup},

	{"GET", "attachments", 27, func(s *Sim, c *call) reply { return s.listAttachments(c, false) }},
	{"POST", "attachments", 27, (*Sim).createAttachment},
	{"GET", "attachments/detail", 27, func(s *Sim, c *call) reply { return s.listAttachments(c, true) }},
	{"GET", "attachments/{id}", 27, show("attachment", func(s *Sim, c *call) any { return s.oneAttachment(c).view(true) })},
	{"DELETE", "attachments/{id}", 27, (*Sim).deleteAttachment},

	{"GET", "messages", 3, (*Sim).listMessages},
	{"GET", "messages/{id}", 3, show("message", func(s *Sim, c *call) any { return s.oneMessage(c).view(c) })},
	{"DELETE", "messages/{id}", 3, (*Sim).deleteMessage},

	{"GET", "os-availability-zone", 0, show("availabilityZoneInfo", func(s *Sim, _ *call) any { return each(s.volumeZones, zone.view) })},
	{"POST", "os-availability-zone", 0, (*Sim).noItem},
	{"GET", "os-availability-zone/{id}", 0, (*Sim).noItem},
	{"GET", "limits", 0, (*Sim).volumeLimits},
	{"GET", "os-quota-sets/{project}", 0, (*Sim).showQuota},
	{"PUT", "os-quota-sets/{project}", 0, (*Sim).updateQuota},
	{"GET", "os-quota-sets/{project}/defaults", 0, (*Sim).defaultQuota},
	{"GET", "group_types", 11, (*Sim).listGroupTypes},
	{"GET", "scheduler-stats/get_pools", 0, (*Sim).listPools},
	{"GET", "os-services", 0, (*Sim).listVolumeServices},
	{"PUT", "os-services/disable", 0, func(s *Sim, c *call) reply { return s.setService(c, true) }},
	{"PUT", "os-services/enable", 0, func(s *Sim, c *call) reply { return s.setService(c, false) }},
	{"GET", "resource_filters", 33, (*Sim).listFilters},
}

func (s *Sim) serveVolume(c *call) reply {
	switch c.path {
	case "", "/":
		c.echo = "volume 3.0"
		return s.allVolumeVersions(c)
	case "/healthcheck":
		return reply{status: http.StatusOK, body: text{"text/plain; charset=UTF-8", "OK"}}
	}
	rest, ok := strings.CutPrefix(c.path, "/v3")
	if !ok || rest != "" && rest[0] != '/' {
		return noPage()
	}
	if refusal := s.authenticate(c, s.config.VolumeServiceType); refusal != nil {
		return *refusal
	}
	if rest == "" {
		return reply{status: http.StatusFound, header: http.Header{"Location": {c.base(blocks) + "/v3/"}, "Content-Type": {"text/plain; charset=utf8"}}}
	}
	if c.token.project == nil {
		return fault(http.StatusForbidden, badRequestMessage)
	}
	asked, ok := askedVersion(c.Header, "volume")
	if !ok {
		return fault(http.StatusBadRequest, badRequestMessage)
	}
	if asked == malformed {
		return fault(http.StatusInternalServerError, serverError)
	}
	if refusal := c.versioned("volume", 3, 0, s.volumeMinor(), asked); refusal != nil {
		return *refusal
	}
	if rest == "/" {
		return reply{status: http.StatusOK, body: obj{{"versions", []obj{s.volumeVersion(c, "v3.0")}}}}
	}
	return s.volumeCall(c, rest[1:])
}

// volumeCall serves the path below /v3/, with or without a project ID before it.
func (s *Sim) volumeCall(c *call, path string) reply {
	first, rest, _ := strings.Cut(path, "/")
	if isUUID(first) && rest != "" {
		if first != c.token.project.ID {
			return fault(http.StatusBadRequest, "Malformed request url")
		}
		path = rest
	}
	return s.dispatch(c, volumeRoutes, path)
}

// noItem is the reply if a controller lacks the action of a URL.
func (s *Sim) noItem(*call) reply { return fault(http.StatusNotFound, notFoundMessage) }

func (c *call) selfLinks(collection, id string) []obj {
	p := c.token.project.ID
	return []obj{
		link("self", c.base(blocks)+"/v3/"+p+"/"+collection+"/"+id),
		link("bookmark", c.base(blocks)+"/"+p+"/"+collection+"/"+id),
	}
}
