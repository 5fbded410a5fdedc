package openstacksim

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

type snapshot struct {
	id, project, user string
	name, description *string
	status            string
	volume            *volume
	size              int
	metadata          map[string]string
	created, updated  time.Time
	taken             time.Time
	building          bool
	clock             clock
}

func (p *snapshot) owner() string { return p.project }

func (p *snapshot) turn(status string) { p.status, p.updated = status, p.clock.now() }

var snapshotFields = fields[*snapshot]{
	"id":                func(p *snapshot) string { return p.id },
	"name":              func(p *snapshot) string { return deref(p.name) },
	"display_name":      func(p *snapshot) string { return deref(p.name) },
	"status":            func(p *snapshot) string { return p.status },
	"volume_id":         func(p *snapshot) string { return p.volume.id },
	"size":              func(p *snapshot) string { return sortNumber(p.size) },
	"volume_size":       func(p *snapshot) string { return sortNumber(p.size) },
	"created_at":        func(p *snapshot) string { return sortTime(p.created) },
	"updated_at":        func(p *snapshot) string { return sortTime(p.updated) },
	"availability_zone": func(p *snapshot) string { return p.volume.zone },
	"project_id":        func(p *snapshot) string { return p.project },
}

func (p *snapshot) matches(f param) bool {
	switch f.key {
	case "metadata":
		return hasPairs(p.metadata, f.value, func(a, b string) bool { return a == b })
	case "consumes_quota":
		return isTrue(f.value)
	}
	return snapshotFields.match(p, f)
}

func (s *Sim) snapshotsOf(v *volume) []*snapshot {
	return where(maps.Values(s.snapshots), func(p *snapshot) bool { return p.volume == v })
}

func (s *Sim) visibleSnapshot(c *call, id string) *snapshot {
	visibleOf(c, "Snapshot", s.lagging().snapshots, id)
	return visibleOf(c, "Snapshot", s.snapshots, id)
}

func (p *snapshot) view(c *call, detail, extended bool) obj {
	createdAt := p.created
	if !p.building {
		createdAt = createdAt.Truncate(time.Second)
	}
	o := obj{
		{"id", p.id},
		{"created_at", micros(createdAt)},
		{"updated_at", microsOrNull(p.updated)},
		{"name", p.name},
		{"description", p.description},
		{"volume_id", p.volume.id},
		{"status", p.status},
		{"size", p.size},
		{"metadata", p.metadata},
	}
	if !detail {
		return o
	}
	o = o.when(c.version >= 14, pair{"group_snapshot_id", nil})
	o = o.when(c.version >= 41, pair{"user_id", p.user})
	o = o.when(c.version >= 65, pair{"consumes_quota", true})
	if extended {
		progress := "0%"
		if slices.Contains([]string{"available", "backing-up", "deleting", "error_deleting"}, p.status) {
			progress = "100%"
		}
		o = append(o, pair{"os-extended-snapshot-attributes:project_id", p.project}, pair{"os-extended-snapshot-attributes:progress", progress})
	}
	return o
}

func (s *Sim) createSnapshot(c *call) reply {
	body := c.object("snapshot", true, "name", "description", "display_name", "display_description", "volume_id", "force", "metadata")
	id, ok := body["volume_id"].(string)
	if !ok {
		return invalid("snapshot", c.raw("snapshot"), "'volume_id' is a required property")
	}
	if !isUUID(id) {
		return invalid("volume_id", id, python(id)+" is not valid under any of the given schemas")
	}
	if force, given := body["force"]; given && !slices.Contains(booleans, force) {
		return invalid("force", force, python(force)+" is not one of "+python(booleans))
	}
	m := metadataOf(body["metadata"], "'object', 'null'")
	textOrNull(body, "name", 0)
	textOrNull(body, "description", 0)
	v := s.visible(c, id)
	s.refusesReader(c, "volume:create_snapshot")
	force, given := body["force"]
	if c.version >= 66 && given && !isTrue(bare(force)) {
		return fault(http.StatusBadRequest, "Since microversion 3.66 the 'force' flag is invalid for this request.  For backward compatability, however, when the "+
			"'force' flag is passed with a value evaluating to True, it is silently ignored.")
	}
	allowed := []string{"available"}
	if given && isTrue(bare(force)) || c.version >= 66 {
		allowed = append(allowed, "in-use")
	}
	switch {
	case v.host == "":
		return fault(http.StatusBadRequest, "Invalid volume: volume is not assigned to a host")
	case s.backendsFrozen:
		return frozen()
	case v.status == "maintenance":
		return fault(http.StatusBadRequest, "Invalid volume: The snapshot cannot be created when the volume is in maintenance mode.")
	case v.status == "error":
		return fault(http.StatusBadRequest, "Invalid volume: The snapshot cannot be created when the volume is in error status.")
	case !slices.Contains(allowed, v.status):
		return fault(http.StatusBadRequest, "Invalid volume: Volume "+v.id+" status must be "+strings.Join(allowed, ", ")+", but current status is: "+v.status+".")
	}
	s.reserveSnapshot(v)
	p := &snapshot{
		id: s.newID(), project: v.project, user: c.token.user.ID, name: optional(body["name"]), description: optional(body["description"]),
		status: "creating", volume: v, size: v.size, metadata: m, building: true, clock: s.hostClock(),
	}
	p.created, p.taken = p.clock.exact(), time.Now()
	s.snapshots[p.id] = p
	answer := p.view(c, true, false)
	s.buildSnapshot(c, p)
	return reply{status: http.StatusAccepted, body: obj{{"snapshot", answer}}}
}

func (s *Sim) buildSnapshot(c *call, p *snapshot) {
	p.building = false
	failure := s.operationFault(CreateSnapshot).try(func() error { return s.data.Make(p.id, p.volume.id, p.size) })
	s.after(s.latency[CreateSnapshot]+failure.Delay, func() {
		p.turn("available")
		if failure.fails() {
			p.status = "error"
			s.addMessage(c, "VOLUME_SNAPSHOT", p.id, p.project, "VOLUME_VOLUME_SNAPSHOT_009_001", failure.message("create snapshot:Snapshot failed to create."))
		}
	})
}

func (s *Sim) listSnapshots(c *call, detail bool) reply {
	q := c.listQuery([]string{"name", "status", "volume_id", "metadata", "availability_zone", "consumes_quota"}, []string{"id", "name", "status", "created_at", "updated_at", "volume_id", "volume_size", "size"})
	retain(s, s.snapshots, q)
	return listOf(c, q, "Snapshot", detail, s.snapshots, snapshotFields, (*snapshot).matches, func(p *snapshot) obj { return p.view(c, detail, true) })
}

func (s *Sim) deleteSnapshot(c *call) reply {
	p := s.visibleSnapshot(c, c.vars["id"])
	s.refusesReader(c, "volume:delete_snapshot")
	if s.backendsFrozen {
		return frozen()
	}
	if p.status != "available" && p.status != "error" {
		return fault(http.StatusBadRequest, "Invalid snapshot: Snapshot status must be available or error and must not be part of a group.")
	}
	s.removeSnapshot(c, p)
	return reply{status: http.StatusAccepted}
}

// snapshotAction serves POST /snapshots/{id}/action, which has one action, for administrators.
func (s *Sim) snapshotAction(c *call) reply {
	body := c.object("os-reset_status", true, "status")
	p := s.visibleSnapshot(c, c.vars["id"])
	c.adminOnly("volume_extension:snapshot_admin_actions:reset_status")
	if status, _ := body["status"].(string); status != "" {
		p.turn(strings.ToLower(status))
	}
	return c.accepted(http.StatusAccepted)
}

func (s *Sim) removeSnapshot(c *call, p *snapshot) {
	p.turn("deleting")
	failure := s.operationFault(DeleteSnapshot)
	s.after(s.latency[DeleteSnapshot]+failure.Delay, func() {
		if s.keeps(p) {
			p.turn("available")
			s.addMessage(c, "VOLUME_SNAPSHOT", p.id, p.project, "VOLUME_VOLUME_SNAPSHOT_010_015", "delete snapshot:Snapshot is busy.")
			return
		}
		if failure = failure.try(func() error { return s.data.Remove(p.id) }); failure.fails() {
			p.status = "error_deleting"
			s.addMessage(c, "VOLUME_SNAPSHOT", p.id, p.project, "VOLUME_VOLUME_SNAPSHOT_010_003", failure.message("delete snapshot:Snapshot failed to delete."))
			return
		}
		delete(s.snapshots, p.id)
	})
}
