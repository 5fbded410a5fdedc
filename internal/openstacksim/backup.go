package openstacksim

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// backup is one Cinder backup. It outlives its volume.
type backup struct {
	id, project, user string
	name, description *string
	status            string
	volume            string // id
	size              int
	snapshot          string            // id
	zone              string            // that the request asks for, or that of the cinder-backup that has it; "" up to Zed
	labels            map[string]string // metadata of the backup
	metadata          map[string]string // of the volume at that time
	base              string            // ID of the backup that an incremental one depends on
	reason            string            // why it failed
	container         string            // where its data is; "" until it has data
	objects           int
	lost              bool // a delete of another backup has deleted the data
	created, updated  time.Time
	data              time.Time // time of the data, in whole seconds
	read              time.Time // the same, exactly
	clock             clock
}

func (b *backup) turn(status, reason string) {
	b.status, b.reason, b.updated = status, reason, b.clock.now()
}

func (b *backup) owner() string { return b.project }

var backupFields = fields[*backup]{
	"id":           func(b *backup) string { return b.id },
	"name":         func(b *backup) string { return deref(b.name) },
	"display_name": func(b *backup) string { return deref(b.name) },
	"status":       func(b *backup) string { return b.status },
	"volume_id":    func(b *backup) string { return b.volume },
	"size":         func(b *backup) string { return sortNumber(b.size) },
	"created_at":   func(b *backup) string { return sortTime(b.created) },
	"updated_at":   func(b *backup) string { return sortTime(b.updated) },
}

func (s *Sim) visibleBackup(c *call, id string) *backup {
	visibleOf(c, "Backup", s.lagging().backups, id)
	return visibleOf(c, "Backup", s.backups, id)
}

// dependents reports whether incremental backups depend on b.
func (s *Sim) dependents(b *backup) bool {
	return len(where(maps.Values(s.backups), func(other *backup) bool { return other.base == b.id })) > 0
}

func (s *Sim) createBackup(c *call) reply {
	allowed := []string{"volume_id", "container", "description", "incremental", "force", "name", "snapshot_id"}
	if c.version >= 43 {
		allowed = append(allowed, "metadata")
	}
	if c.version >= 51 {
		allowed = append(allowed, "availability_zone")
	}
	body := c.object("backup", true, allowed...)
	ids, labels := checkBackup(c, body)
	v := s.visible(c, ids["volume_id"])
	s.refusesReader(c, "backup:create")
	b := &backup{
		id: s.newID(), project: v.project, user: c.token.user.ID, name: optional(body["name"]), description: optional(body["description"]), status: "creating",
		volume: v.id, size: v.size, labels: labels, metadata: maps.Clone(v.metadata), data: now(), read: time.Now(), clock: s.hostClock(),
	}
	b.created = b.clock.now()
	if s.afterZed() {
		b.zone, _ = body["availability_zone"].(string)
	}
	p := s.backupSource(c, b, v, ids["snapshot_id"], isTrue(bare(body["force"])))
	s.reserveBackup(v)
	if isTrue(bare(body["incremental"])) {
		s.setBase(b, p)
	}
	s.backups[b.id] = b
	s.makeBackup(c, b, v, p)
	return reply{status: http.StatusAccepted, body: obj{{"backup", obj{{"id", b.id}, {"name", b.name}, {"links", c.selfLinks("backups", b.id)}}}}}
}

// checkBackup checks the body of a new backup and returns its IDs and metadata.
func checkBackup(c *call, body map[string]any) (map[string]string, map[string]string) {
	ids := map[string]string{}
	if _, given := body["volume_id"]; !given {
		panic(invalid("backup", c.raw("backup"), "'volume_id' is a required property"))
	}
	for _, field := range []string{"volume_id", "snapshot_id"} {
		id, ok := body[field].(string)
		if body[field] == nil && field == "snapshot_id" {
			continue
		}
		if !ok || !isUUID(id) {
			complaint := " is not a 'uuid'"
			if field == "snapshot_id" { // which may be null
				complaint = " is not valid under any of the given schemas"
			}
			panic(invalid(field, body[field], python(body[field])+complaint))
		}
		ids[field] = id
	}
	for _, field := range []string{"incremental", "force"} {
		if v, given := body[field]; given && !slices.Contains(booleans, v) {
			panic(invalid(field, v, python(v)+" is not one of "+python(booleans)))
		}
	}
	labels := metadataOf(body["metadata"], "'object', 'null'")
	for _, field := range []string{"name", "description", "availability_zone"} {
		textOrNull(body, field, 0)
	}
	return ids, labels
}

// backupSource checks the source of a backup: the snapshot with that ID, or the volume if the ID is empty.
func (s *Sim) backupSource(c *call, b *backup, v *volume, id string, forced bool) *snapshot {
	if id == "" {
		switch {
		case !slices.Contains([]string{"available", "in-use"}, v.status):
			panic(fault(http.StatusBadRequest, "Invalid volume: Volume to be backed up must be available or in-use, but the current status is \""+v.status+"\"."))
		case v.status == "in-use" && !forced:
			panic(fault(http.StatusBadRequest, "Invalid volume: Backing up an in-use volume must use the force flag."))
		}
		return nil
	}
	p := s.visibleSnapshot(c, id)
	switch {
	case p.volume != v:
		panic(fault(http.StatusBadRequest, "Invalid volume: Volume "+v.id+" does not match with snapshot.volume_id "+p.volume.id+"."))
	case p.status != "available":
		panic(fault(http.StatusBadRequest, "Invalid snapshot: Snapshot to be backed up must be available, but the current status is \""+p.status+"\"."))
	}
	b.snapshot, b.data, b.read = p.id, p.created.Truncate(time.Second), p.taken
	return p
}

// setBase makes b depend on the backup of the same volume with the latest data. Data that is younger than the snapshot counts as
// the oldest.
func (s *Sim) setBase(b *backup, p *snapshot) {
	age := func(other *backup) time.Time {
		if p != nil && !other.data.Before(p.created) || s.afterZed() && other.status != "available" {
			return time.Time{}
		}
		return other.data
	}
	var latest *backup
	for _, other := range s.backups {
		if other.volume == b.volume && other.project == b.project && (latest == nil || age(other).After(age(latest))) {
			latest = other
		}
	}
	if latest == nil {
		panic(noBase())
	}
	if latest.status != "available" {
		if s.afterZed() {
			panic(noBase())
		}
		panic(fault(http.StatusBadRequest, "Invalid backup: The parent backup must be available for incremental backup."))
	}
	b.base = latest.id
}

func noBase() reply {
	return fault(http.StatusBadRequest, "Invalid backup: No backups available to do an incremental backup.")
}

// schedulable reports whether the scheduler finds a cinder-backup. It looks in the zone that the request names, or else in that of the
// volume. Up to Zed it ignores the request. It does not notice a disabled service.
func (s *Sim) schedulable(b *backup, v *volume) bool {
	return !s.config.NoBackupService && cmp.Or(b.zone, v.zone) == s.backupZone()
}

func (s *Sim) backupZone() string { return s.volumeZones[0].name }

// makeBackup is what the scheduler and cinder-backup do after the reply. cinder-backup attaches the source to its own host. So
// faults of an attach also affect a backup and a restore.
func (s *Sim) makeBackup(c *call, b *backup, v *volume, p *snapshot) {
	release := func() { p.turn("available") }
	if p == nil {
		before := v.status
		v.status = "backing-up"
		release = func() { v.status = before }
	} else {
		p.turn("backing-up")
	}
	if !s.schedulable(b, v) {
		s.after(s.latency[Answer], func() {
			if p == nil {
				release()
			} else {
				v.status = "" // it resets the volume, whose previous status it does not know, and forgets the snapshot
			}
			b.turn("error", "Service not found for creating backup.")
			s.addMessage(c, "VOLUME_BACKUP", b.id, b.project, "VOLUME_VOLUME_BACKUP_013_024", "create backup:Backup failed to schedule. Service not found for creating backup.")
		})
		return
	}
	if s.afterZed() {
		b.zone = s.backupZone() // cinder-backup writes it
	}
	failure := s.operationFault(Attach, CreateBackup)
	failure = failure.try(func() error { return s.data.Make(b.id, cmp.Or(b.snapshot, v.id), b.size) })
	s.after(s.latency[CreateBackup]+failure.Delay, func() {
		release()
		if failure.fails() {
			b.turn("error", failure.message("The volume could not be read."))
			s.addMessage(c, "VOLUME_BACKUP", b.id, b.project, "VOLUME_VOLUME_BACKUP_013_021", "create backup:Failed to attach volume.")
			return
		}
		if s.config.CephBackups {
			s.storeInCeph(b)
			return
		}
		b.container, b.objects = b.id, s.objectsOf(b)
		b.turn("available", "")
	})
}

// objectsOf is how many objects of 50 MiB the file store of the bed keeps for a backup. A full one has the whole volume. An incremental one has each
// extent that has changed since its base (_backup_chunk and _finalize_backup in backup/chunkeddriver.py). That is none for a volume that nobody wrote to.
func (s *Sim) objectsOf(b *backup) (n int) {
	base := s.backups[b.base]
	if base == nil {
		return (b.size*1024 + 49) / 50
	}
	for _, w := range s.writes[b.volume] {
		if w.at.After(base.read) && !w.at.After(b.read) {
			n += w.extents
		}
	}
	return n
}

// written says that something wrote to so many extents of a volume at a time.
type written struct {
	at      time.Time
	extents int
}

// WriteVolume changes so many extents of a volume, apart from each other. The next incremental backup has them.
func (s *Sim) WriteVolume(id string, extents int) {
	defer s.lock()()
	s.writes[id] = append(s.writes[id], written{time.Now(), extents})
}

func (s *Sim) storeInCeph(b *backup) {
	b.container = "backups"
	if slices.ContainsFunc(s.sharing(b), func(other *backup) bool { return other.container != "" }) {
		b.turn("error", "[errno 17] RBD image already exists (error creating image)")
		return
	}
	b.turn("available", "")
}

// SetCephBackups makes cinder-backup store in Ceph from now on, or no longer (see Config).
func (s *Sim) SetCephBackups(is bool) { assign(s, &s.config.CephBackups, is) }

func (s *Sim) sharing(b *backup) []*backup {
	return where(maps.Values(s.backups), func(other *backup) bool {
		return s.config.CephBackups && other != b && other.volume == b.volume && b.snapshot != "" && other.snapshot != ""
	})
}

func (s *Sim) viewBackup(c *call, b *backup) obj {
	o := obj{
		{"id", b.id},
		{"status", b.status},
		{"size", b.size},
		{"object_count", b.objects},
		{"availability_zone", orNull(b.zone)},
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
		{"data_timestamp", micros(b.data)},
	}
	o = o.when(c.version >= 43, pair{"metadata", b.labels})
	o = o.when(c.version >= 18 && c.token.admin(), pair{"os-backup-project-attr:project_id", b.project})
	return o.when(c.version >= 56 && c.token.admin(), pair{"user_id", b.user})
}

func (s *Sim) listBackups(c *call, detail bool) reply {
	q := c.listQuery([]string{"name", "status", "volume_id"}, []string{"id", "name", "status", "created_at", "updated_at", "volume_id", "size"})
	if b := s.backups[q.marker]; b != nil && !s.dependents(b) {
		retain(s, s.backups, q)
	}
	return listOf(c, q, "Backup", detail, s.backups, backupFields, backupFields.match, func(b *backup) obj {
		if detail {
			return s.viewBackup(c, b)
		}
		return obj{{"id", b.id}, {"name", b.name}, {"links", c.selfLinks("backups", b.id)}}
	})
}

func (s *Sim) deleteBackup(c *call) reply {
	b := s.visibleBackup(c, c.vars["id"])
	s.refusesReader(c, "backup:delete")
	switch {
	case b.status != "available" && b.status != "error":
		return fault(http.StatusBadRequest, "Invalid backup: Backup status must be available or error")
	case s.dependents(b):
		return fault(http.StatusBadRequest, "Invalid backup: Incremental backups exist for this backup.")
	case s.backupsDisabled || s.config.NoBackupService || b.zone != "" && b.zone != s.backupZone(): // seen on Epoxy: nobody can delete such a backup
		return fault(http.StatusNotFound, "Service cinder-backup could not be found.")
	}
	b.turn("deleting", "")
	failure := s.operationFault(DeleteBackup)
	s.after(s.latency[DeleteBackup]+failure.Delay, func() {
		if failure = failure.try(func() error { return s.data.Remove(b.id) }); failure.fails() {
			b.turn("error", failure.message("The store did not delete it."))
			return
		}
		for _, other := range s.sharing(b) {
			other.lost = true
		}
		delete(s.backups, b.id)
	})
	return c.accepted(http.StatusAccepted)
}

// backupAction serves POST /backups/{id}/action, which has one action, for administrators.
func (s *Sim) backupAction(c *call) reply {
	body := c.object("os-reset_status", true, "status")
	b := s.visibleBackup(c, c.vars["id"])
	c.adminOnly("volume_extension:backup_admin_actions:reset_status")
	if status, _ := body["status"].(string); status != "" {
		b.turn(status, b.reason)
	}
	return c.accepted(http.StatusAccepted)
}

// restoreBackup serves POST /backups/{id}/restore. Without a volume Cinder would create one, which this cloud refuses.
func (s *Sim) restoreBackup(c *call) reply {
	body := c.object("restore", true, "name", "volume_id")
	textOrNull(body, "name", 0)
	id := optionalUUID(body, "volume_id")
	b := s.visibleBackup(c, c.vars["id"])
	s.refusesReader(c, "backup:restore")
	switch {
	case b.status != "available":
		return fault(http.StatusBadRequest, "Invalid backup: Backup status must be available")
	case id == "":
		return fault(http.StatusNotImplemented, "The simulated cloud does not create a volume for a restore.")
	}
	v := s.visible(c, id)
	switch {
	case v.status != "available":
		return fault(http.StatusBadRequest, "Invalid volume: Volume to be restored to must be available")
	case b.size > v.size:
		return fault(http.StatusBadRequest, fmt.Sprintf("Invalid volume: volume size %d is too small to restore backup of size %d.", v.size, b.size))
	case s.backupsDisabled || s.config.NoBackupService || b.zone != "" && b.zone != s.backupZone():
		return fault(http.StatusNotFound, "Service cinder-backup could not be found.")
	}
	v.turn("restoring-backup")
	s.restore(c, v, b, func() error { return s.data.Write(v.id, b.id) })
	return reply{status: http.StatusAccepted, body: obj{{"restore", obj{{"backup_id", b.id}, {"volume_id", v.id}, {"volume_name", v.name}}}}}
}

// restore is what cinder-backup does with a volume after its backend created it. It writes the data, and gives the volume the metadata of the
// source volume, if that had any.
func (s *Sim) restore(c *call, v *volume, b *backup, write func() error) {
	b.turn("restoring", "")
	failure := s.operationFault(Attach, RestoreBackup)
	if !b.lost {
		failure = failure.try(write)
	}
	s.after(s.latency[RestoreBackup]+failure.Delay, func() {
		b.turn("available", "")
		v.update()
		if failure.fails() || b.lost {
			v.status = "error_restoring"
			if !c.beforeZed { // cinder-backup of Victoria leaves no messages
				s.addMessage(c, "VOLUME_BACKUP", b.id, b.project, "VOLUME_VOLUME_BACKUP_015_021", failure.message("restore backup:Failed to attach volume."))
			}
			return
		}
		if len(b.metadata) > 0 {
			v.metadata = maps.Clone(b.metadata)
		}
		if v.id != b.volume {
			v.metadata["src_backup_id"] = b.id
		}
		v.status = "available"
	})
}

// setService serves PUT /os-services/disable and enable, for cinder-backup only.
func (s *Sim) setService(c *call, disabled bool) reply {
	body := c.decode()
	c.adminOnly("volume_extension:services:update")
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
