package openstacksim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"
)

// backup is one Cinder backup. It outlives its volume.
type backup struct {
	id, project       string
	name, description *string
	status            string
	volume            string // id
	size              int
	snapshot          string            // id
	metadata          map[string]string // of the volume at that time
	base              string            // id of the backup that an incremental one rests on
	reason            string            // why it failed
	container         string            // where its data is; empty until there is some
	objects           int
	created, updated  time.Time
}

func (b *backup) turn(status, reason string) { b.status, b.reason, b.updated = status, reason, now() }

func (s *Sim) visibleBackup(c *call, id string) (*backup, *reply) {
	b := s.backups[id]
	if b == nil || b.project != c.token.project.ID && !c.token.admin() {
		return nil, ptr(fault(http.StatusNotFound, "Backup "+id+" could not be found."))
	}
	return b, nil
}

// dependents are the incremental backups that rest on b.
func (s *Sim) dependents(b *backup) bool {
	for _, other := range s.backups {
		if other.base == b.id {
			return true
		}
	}
	return false
}

func (s *Sim) createBackup(c *call) reply {
	body, bad := c.object("backup", true, "volume_id", "container", "description", "incremental", "force", "name", "snapshot_id", "metadata", "availability_zone")
	if bad != nil {
		return *bad
	}
	if _, ok := body["volume_id"].(string); !ok {
		return *invalid("backup", c.raw("backup"), "'volume_id' is a required property")
	}
	v, missing := s.visible(c, body["volume_id"].(string))
	if missing != nil {
		return *missing
	}
	incremental, forced := isTrue(bare(body["incremental"])), isTrue(bare(body["force"]))
	switch {
	case !slices.Contains([]string{"available", "in-use"}, v.status):
		return fault(http.StatusBadRequest, "Invalid volume: Volume to be backed up must be available or in-use, but the current status is \""+v.status+"\".")
	case v.status == "in-use" && !forced:
		return fault(http.StatusBadRequest, "Invalid volume: Backing up an in-use volume must use the force flag.")
	}
	b := &backup{
		id: s.newID(), project: v.project, name: optional(body["name"]), description: optional(body["description"]), status: "creating",
		volume: v.id, size: v.size, metadata: maps.Clone(v.metadata), created: now(),
	}
	if incremental {
		base := s.latestBackup(v)
		if base == nil {
			return fault(http.StatusBadRequest, "Invalid backup: No backups available to do an incremental backup.")
		}
		if base.status != "available" {
			return fault(http.StatusBadRequest, "Invalid backup: The parent backup must be available for incremental backup.")
		}
		b.base = base.id
	}
	s.backups[b.id] = b
	s.readVolume(c, b, v)
	return reply{status: http.StatusAccepted, body: obj{{"backup", obj{{"id", b.id}, {"name", b.name}, {"links", c.selfLinks("backups", b.id)}}}}}
}

func (s *Sim) latestBackup(v *volume) *backup {
	var latest *backup
	for _, b := range s.backups {
		if b.volume == v.id && (latest == nil || b.created.After(latest.created)) {
			latest = b
		}
	}
	return latest
}

// readVolume is what cinder-backup does after the answer. It attaches the volume to its own host, so what goes wrong with an attach
// goes wrong with a backup and a restore.
func (s *Sim) readVolume(c *call, b *backup, v *volume) {
	before := v.status
	v.status = "backing-up"
	failure := s.operationFault(Attach)
	if !failure.fired {
		failure = s.operationFault(CreateBackup)
	}
	failure = failure.try(func() error { return s.data.Make(b.id, cmp.Or(b.snapshot, v.id), b.size) })
	s.after(s.latency[CreateBackup]+failure.Delay, func() {
		v.status = before
		if failure.fails() {
			v.status = "error_backing-up"
			if before == "available" {
				v.status = before
			}
			b.turn("error", failure.message("The volume could not be read."))
			s.addMessage(c, "VOLUME_BACKUP", b.id, b.project, "VOLUME_VOLUME_BACKUP_013_021", "create backup:Failed to attach volume.")
			return
		}
		b.container, b.objects = b.id, 21*b.size // objects of 50 MiB, as the file store makes them
		b.turn("available", "")
	})
}

func (s *Sim) showBackup(c *call) reply {
	b, missing := s.visibleBackup(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	return reply{status: http.StatusOK, body: obj{{"backup", obj{
		{"id", b.id},
		{"status", b.status},
		{"size", b.size},
		{"object_count", b.objects},
		{"availability_zone", nil},
		{"container", orNull(b.container)},
		{"created_at", micros(b.created)},
		{"updated_at", microsOrNull(b.updated)},
		{"name", b.name},
		{"description", b.description},
		{"fail_reason", orNull(b.reason)},
		{"volume_id", b.volume},
		{"links", c.selfLinks("backups", b.id)},
		{"is_incremental", b.base != ""},
		{"has_dependent_backups", s.dependents(b)},
		{"snapshot_id", orNull(b.snapshot)},
		{"data_timestamp", micros(b.created)},
	}}}}
}

func (s *Sim) deleteBackup(c *call) reply {
	b, missing := s.visibleBackup(c, c.vars["id"])
	switch {
	case missing != nil:
		return *missing
	case b.status != "available" && b.status != "error":
		return fault(http.StatusBadRequest, "Invalid backup: Backup status must be available or error")
	case s.dependents(b):
		return fault(http.StatusBadRequest, "Invalid backup: Incremental backups exist for this backup.")
	case s.backupsDisabled:
		return fault(http.StatusNotFound, "Service cinder-backup could not be found.")
	}
	b.turn("deleting", "")
	failure := s.operationFault(DeleteBackup)
	s.after(s.latency[DeleteBackup]+failure.Delay, func() {
		if failure = failure.try(func() error { return s.data.Remove(b.id) }); failure.fails() {
			b.turn("error", failure.message("The store did not delete it."))
			return
		}
		delete(s.backups, b.id)
	})
	return c.accepted(http.StatusAccepted)
}

// backupAction serves POST /backups/{id}/action, of which there is one for administrators.
func (s *Sim) backupAction(c *call) reply {
	body, bad := c.object("os-reset_status", true, "status")
	if bad != nil {
		return *bad
	}
	b, missing := s.visibleBackup(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	if !c.token.admin() {
		return forbidden("volume_extension:backup_admin_actions:reset_status")
	}
	if status, _ := body["status"].(string); status != "" {
		b.turn(status, b.reason)
	}
	return c.accepted(http.StatusAccepted)
}

// restore is what cinder-backup does once the backend has made the empty volume v: it writes the data, and gives the volume the
// metadata of the one that was backed up.
func (s *Sim) restore(c *call, v *volume, b *backup) {
	b.turn("restoring", "")
	failure := s.operationFault(Attach)
	if !failure.fired {
		failure = s.operationFault(RestoreBackup)
	}
	s.after(s.latency[RestoreBackup]+failure.Delay, func() {
		b.turn("available", "")
		v.update()
		if failure.fails() {
			v.status = "error_restoring"
			s.addMessage(c, "VOLUME_BACKUP", b.id, b.project, "VOLUME_VOLUME_BACKUP_015_021", failure.message("restore backup:Failed to attach volume."))
			return
		}
		v.metadata = maps.Clone(b.metadata)
		v.metadata["src_backup_id"] = b.id
		v.status = "available"
	})
}

// setService serves PUT /os-services/disable and enable, as far as cinder-backup is concerned.
func (s *Sim) setService(c *call, disabled bool) reply {
	body, bad := c.decode()
	if bad != nil {
		return *bad
	}
	if !c.token.admin() {
		return forbidden("volume_extension:services:update")
	}
	binary, _ := body["binary"].(string)
	if binary != "cinder-backup" {
		return fault(http.StatusNotFound, "Service "+binary+" could not be found.")
	}
	s.backupsDisabled = disabled
	status := "enabled"
	if disabled {
		status = "disabled"
	}
	return reply{status: http.StatusOK, body: obj{{"host", body["host"]}, {"service", binary}, {"disabled", disabled}, {"binary", binary}, {"status", status}}}
}
