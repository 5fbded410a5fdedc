package openstacksim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// attachment is a Cinder attachment. A volume shows it only in the status attached.
type attachment struct {
	id, status string // reserved, attaching, attached, detaching
	volume     *volume
	server     string // Nova ID; "" if the request named none
	device     string
	host       string
	mode       string // rw or ro; null until a request sets it
	attachedAt time.Time
}

// inVolume is the attachment as the volume shows it.
func (a *attachment) inVolume(c *call) obj {
	var host any
	if c.token.admin() {
		host = orNull(a.host)
	}
	return obj{
		{"id", a.volume.id},
		{"attachment_id", a.id},
		{"volume_id", a.volume.id},
		{"server_id", orNull(a.server)},
		{"host_name", host},
		{"device", orNull(a.device)},
		{"attached_at", microsOrNull(a.attachedAt)},
	}
}

// view is the attachment as the attachments API shows it.
func (a *attachment) view(detail bool) obj {
	o := obj{{"id", a.id}, {"status", a.status}, {"instance", orNull(a.server)}, {"volume_id", a.volume.id}}
	if !detail {
		return o
	}
	at, info := "", obj{}
	if a.status == "attached" || a.status == "attaching" {
		info = obj{
			{"device_path", "/dev/sim/volume-" + a.volume.id},
			{"qos_specs", nil},
			{"access_mode", "rw"},
			{"encrypted", a.volume.encrypted()},
			{"cacheable", false},
			{"driver_volume_type", "local"},
			{"attachment_id", a.id},
		}
	}
	if !a.attachedAt.IsZero() {
		at = micros(a.attachedAt)
	}
	return append(o, pair{"attached_at", at}, pair{"detached_at", ""}, pair{"attach_mode", a.mode}, pair{"connection_info", info})
}

var attachmentFields = fields[*attachment]{
	"id":            func(a *attachment) string { return a.id },
	"volume_id":     func(a *attachment) string { return a.volume.id },
	"instance_id":   func(a *attachment) string { return a.server },
	"instance_uuid": func(a *attachment) string { return a.server },
	"attach_status": func(a *attachment) string { return a.status }, // the filter status is allowed, and finds nothing
	"created_at":    func(a *attachment) string { return sortTime(a.attachedAt) },
}

// reserveVolume creates an attachment, which reserves the volume, or returns why Cinder refuses.
func (s *Sim) reserveVolume(v *volume, serverID string) (*attachment, string) {
	if strings.Contains(v.status, "error") {
		return nil, "Invalid volume: Volume attachments can not be created if the volume is in an error state. The Volume " + v.id +
			" currently has a status of: " + v.status + " "
	}
	allowed := []string{"available", "downloading"}
	if v.multiattach {
		allowed = []string{"available", "in-use", "downloading"}
	}
	free := slices.Contains(allowed, v.status)
	if !free {
		// the same server may reserve once more, for a live migration
		again := serverID != "" && (v.status == "in-use" || v.status == "reserved") &&
			slices.ContainsFunc(v.attachments, func(a *attachment) bool { return a.server == serverID })
		if !again {
			last := len(allowed) - 1
			names := strings.Join(allowed[:last], ", ") + " or " + allowed[last]
			return nil, "Invalid volume: Volume " + v.id + " status must be " + names + " to reserve, but the current status is " + v.status + "."
		}
	}
	a := &attachment{id: s.newID(), status: "reserved", volume: v, server: serverID, mode: "null"}
	v.attachments = append(v.attachments, a)
	if free {
		v.turn("reserved")
	}
	return a, ""
}

func (s *Sim) release(a *attachment) {
	v := a.volume
	v.attachments = slices.DeleteFunc(slices.Clone(v.attachments), func(x *attachment) bool { return x == a })
	if s.backend.moving[v.id] && len(v.attachments) == 0 {
		return // Cinder hides that the volume is available (volume_detached in db/sqlalchemy/api.py)
	}
	v.updateStatus()
}

func (v *volume) updateStatus() {
	v.status = "available"
	statuses := map[string]string{"attached": "in-use", "attaching": "attaching", "detaching": "detaching", "reserved": "reserved"}
	for _, furthest := range []string{"reserved", "detaching", "attaching", "attached"} { // the last status that an attachment has; errors do not count
		if slices.ContainsFunc(v.attachments, func(x *attachment) bool { return x.status == furthest }) {
			v.status = statuses[furthest]
		}
	}
	v.update()
}

func (s *Sim) visibleAttachments(c *call, everywhere bool) []*attachment {
	list := []*attachment{}
	for _, v := range s.volumes {
		if everywhere || v.project == c.token.project.ID {
			list = append(list, v.attachments...)
		}
	}
	return list
}

func (s *Sim) listAttachments(c *call, detail bool) reply {
	q := c.listQuery([]string{"volume_id", "status", "instance_id", "attach_status"}, []string{"id", "created_at", "volume_id", "attach_status", "instance_uuid"})
	items, _, _, missing := page(q, s.visibleAttachments(c, c.allProjects(q)), attachmentFields, attachmentFields.match)
	if missing {
		return fault(http.StatusNotFound, "Volume attachment could not be found with filter: attachment_id = "+q.marker+".")
	}
	body := pageBody("attachments", items, func(a *attachment) obj { return a.view(detail) })
	return reply{status: http.StatusOK, body: body} // the only list of Cinder that never links to a next page
}

// oneAttachment finds an attachment of any project. Cinder up to 26 shows one to every user who knows its ID, and 29 to those who may see its volume.
func (s *Sim) oneAttachment(c *call) *attachment {
	for _, a := range s.visibleAttachments(c, !s.fromCinder29() || c.token.admin()) {
		if a.id == c.vars["id"] {
			return a
		}
	}
	panic(fault(http.StatusNotFound, "Volume attachment could not be found with filter: attachment_id = "+c.vars["id"]+"."))
}

// createAttachment only reserves: hypervisors send the connector later.
func (s *Sim) createAttachment(c *call) reply {
	body := c.object("attachment", true, "volume_uuid", "instance_uuid", "connector", "mode")
	id, ok := body["volume_uuid"].(string)
	if !ok {
		return invalid("attachment", c.raw("attachment"), "'volume_uuid' is a required property")
	}
	if !isUUID(id) {
		return invalid("volume_uuid", id, python(id)+" is not a 'uuid'")
	}
	v := s.visible(c, id)
	s.refusesReader(c, "volume:attachment_create")
	serverID, _ := body["instance_uuid"].(string)
	a, refusal := s.reserveVolume(v, serverID)
	if refusal != "" {
		return fault(http.StatusBadRequest, refusal)
	}
	if mode, ok := body["mode"].(string); ok && c.version >= 54 {
		a.mode = mode
	}
	return reply{status: http.StatusOK, body: obj{{"attachment", a.view(true)}}}
}

// deleteAttachment refuses while Nova uses the attachment: then only Nova may delete it (CVE-2023-2088). Cinder does not ask Nova
// about an attachment that has not reached a host. Cinder of Victoria never asks Nova, and does not find the volume of another project.
func (s *Sim) deleteAttachment(c *call) reply {
	a := s.oneAttachment(c)
	if !c.beforeZed && !c.sees(a.volume.project) {
		return forbidden("volume:attachment_delete")
	}
	s.visible(c, a.volume.id)
	s.refusesReader(c, "volume:attachment_delete")
	asksNova := a.status != "reserved" && !c.beforeZed
	if asksNova && a.server != "" && c.token.appCred != nil {
		return fault(http.StatusInternalServerError, serverError) // Cinder asks Nova in the name of the user; Keystone gives it no token for that
	}
	if v := s.servers[a.server]; v != nil && asksNova {
		if b := v.disk(a.volume.id); b != nil && b.attachment == a {
			return fault(http.StatusConflict, "ConflictNovaUsingAttachment: Detach volume from instance "+a.server+" using the Compute API")
		}
	}
	s.release(a)
	rest := pageBody("attachments", a.volume.attachments, func(x *attachment) obj { return x.view(false) })
	return reply{status: http.StatusOK, body: rest}
}

// AddAttachment adds an attachment in a status that Nova does not know, as a failed attach leaves it. It returns the ID. It
// updates the status of the volume. The server need not exist.
func (s *Sim) AddAttachment(volumeID, serverID, status string) string {
	defer s.lock()()
	v := s.volumes[volumeID]
	if v == nil {
		return ""
	}
	a := &attachment{id: s.newID(), status: status, volume: v, server: serverID, mode: "null"}
	v.attachments = append(v.attachments, a)
	v.updateStatus()
	return a.id
}

// SetAttachmentStatus sets the status of the attachment of a volume at a server, as a service that stopped in between leaves it.
// The list of Nova stays as it is. The status of the volume changes as in Cinder.
func (s *Sim) SetAttachmentStatus(volumeID, serverID, status string) error {
	defer s.lock()()
	if v := s.volumes[volumeID]; v != nil {
		for _, a := range v.attachments {
			if a.server == serverID {
				a.status = status
				v.updateStatus()
				return nil
			}
		}
	}
	return fmt.Errorf("there is no attachment of volume %s to server %s", volumeID, serverID)
}
