package openstacksim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type volume struct {
	id, project, user    string
	name, description    *string
	status, zone         string
	size                 int
	kind                 *VolumeType
	snapshotID, sourceID string
	metadata             map[string]string
	created, updated     time.Time
	bootable             bool
	multiattach          bool
	attachments          []*attachment
	host                 string // backend@pool; "" until the scheduler chose one
	clock                clock
}

func (v *volume) update() { v.updated = v.clock.now() }

func (v *volume) turn(status string) {
	v.status = status
	v.update()
}

func (v *volume) attached() []*attachment {
	return where(slices.Values(v.attachments), func(a *attachment) bool { return a.status == "attached" })
}

// visible finds a volume that the user may see.
func (s *Sim) visible(c *call, id string) *volume {
	visibleOf(c, "Volume", s.lagging().volumes, id)
	return visibleOf(c, "Volume", s.volumes, id)
}

// The volume views differ: the reply to a create has microseconds and lacks the fields of the extensions.
type volumeView int

const (
	created volumeView = iota
	updated
	shown
)

func (v *volume) view(s *Sim, c *call, kind volumeView) obj {
	createdAt := v.created
	if kind != created {
		createdAt = createdAt.Truncate(time.Second)
	}
	attachments := each(v.attached(), func(a *attachment) obj { return a.inVolume(c) })
	o := obj{
		{"id", v.id},
		{"status", orNull(v.status)},
		{"size", v.size},
		{"availability_zone", v.zone},
		{"created_at", micros(createdAt)},
		{"updated_at", microsOrNull(v.updated)},
		{"name", v.name},
		{"description", v.description},
		{"volume_type", v.kind.Name},
		{"snapshot_id", orNull(v.snapshotID)},
		{"source_volid", orNull(v.sourceID)},
		{"metadata", v.metadata},
		{"links", c.selfLinks("volumes", v.id)},
		{"user_id", v.user},
		{"bootable", strconv.FormatBool(v.bootable)},
		{"encrypted", v.encrypted()},
		{"replication_status", nil},
		{"consistencygroup_id", nil},
		{"multiattach", v.multiattach},
		{"attachments", attachments},
	}
	admin := c.token.admin()
	o = o.when(admin, pair{"migration_status", nil})
	o = o.when(c.version >= 13, pair{"group_id", nil})
	o = o.when(c.version >= 21 && admin, pair{"provider_id", nil})
	o = o.when(c.version >= 48, pair{"shared_targets", v.host == ""}, pair{"service_uuid", v.service()})
	o = o.when(c.version >= 61 && admin, pair{"cluster_name", nil})
	o = o.when(c.version >= 63, pair{"volume_type_id", v.kind.ID})
	if c.version >= 64 && v.encrypted() {
		o = append(o, pair{"encryption_key_id", FixedID("key", v.id)})
	}
	o = o.when(c.version >= 65, pair{"consumes_quota", true})
	if kind != shown {
		return o
	}
	o = append(o, pair{"os-vol-tenant-attr:tenant_id", v.project})
	return o.when(admin, pair{"os-vol-mig-status-attr:migstat", nil}, pair{"os-vol-mig-status-attr:name_id", nil}, pair{"os-vol-host-attr:host", orNull(v.host)})
}

func (v *volume) encrypted() bool { return v.kind.Encryption != nil }

// service is the UUID of the cinder-volume service of the volume; null before it is scheduled.
func (v *volume) service() any {
	if v.host == "" {
		return nil
	}
	return FixedID("cinder-volume", v.zone)
}

func (s *Sim) updateVolume(c *call) reply {
	body := c.object("volume", true, "name", "description", "display_name", "display_description", "metadata")
	if c.version >= 53 && len(body) == 0 {
		return invalid("volume", c.raw("volume"), "{} is not valid under any of the given schemas")
	}
	name255(body, "name", "description", "display_name", "display_description")
	v := s.visible(c, c.vars["id"])
	s.refusesReader(c, "volume:update")
	before := v.updated
	for key, to := range map[string]**string{"name": &v.name, "display_name": &v.name, "description": &v.description, "display_description": &v.description} {
		if value, ok := body[key]; ok {
			*to = optional(value)
		}
	}
	if m, ok := body["metadata"].(map[string]any); ok {
		v.metadata = stringMap(m)
	}
	answer := v.view(s, c, updated)
	answer[5].value = microsOrNull(before) // Cinder shows the object as it was before the change
	v.update()
	return reply{status: http.StatusOK, body: obj{{"volume", answer}}}
}

// SetBackendsFrozen freezes the storage backends, or thaws them, as an administrator does with "cinder freeze-host" during a failover.
func (s *Sim) SetBackendsFrozen(is bool) { assign(s, &s.backendsFrozen, is) }

// frozen is the refusal of Cinder to change an object on a frozen backend (assert_not_frozen in cinder/objects/base.py).
func frozen() reply {
	return inputError("Modification operations are not allowed on frozen storage backends.")
}

// undeletable is why Cinder refuses to delete a volume, in the words of Cinder.
const undeletable = "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be " +
	"migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer."

var deletable = []string{"available", "error", "error_restoring", "error_extending", "error_managing"}

func (s *Sim) deleteVolume(c *call) reply {
	v := s.visible(c, c.vars["id"])
	s.refusesReader(c, "volume:delete")
	if v.host == "" { // no backend has it: Cinder deletes the record at once, in any status
		if err := s.data.Remove(v.id); err != nil {
			return fault(http.StatusInternalServerError, err.Error())
		}
		delete(s.volumes, v.id)
		return reply{status: http.StatusAccepted}
	}
	if s.backendsFrozen {
		return frozen()
	}
	cascade, _ := c.param("cascade")
	snapshots := s.snapshotsOf(v)
	if cascade == "true" || cascade == "True" || cascade == "1" {
		for _, snap := range snapshots {
			s.removeSnapshot(c, snap)
		}
		snapshots = nil
	}
	if !slices.Contains(deletable, v.status) || len(v.attachments) > 0 || len(snapshots) > 0 {
		if c.beforeZed {
			return fault(http.StatusBadRequest, strings.Replace(undeletable, ", awaiting a transfer,", "", 1))
		}
		return fault(http.StatusBadRequest, undeletable)
	}
	s.removeVolume(c, v)
	return reply{status: http.StatusAccepted}
}

func (s *Sim) removeVolume(c *call, v *volume) {
	v.turn("deleting")
	failure := s.operationFault(DeleteVolume)
	s.after(s.takes(DeleteVolume, deref(v.name))+failure.Delay, func() {
		defer s.effect(DeleteVolume, v, "", c.begun)
		if s.backend.busy[v.id] {
			v.turn("available")
			return
		}
		if failure = failure.try(func() error { return s.data.Remove(v.id) }); failure.fails() {
			v.turn("error_deleting")
			s.addMessage(c, "VOLUME", v.id, v.project, "VOLUME_VOLUME_006_009", failure.message("delete volume:Volume failed to be deleted."))
			return
		}
		delete(s.volumes, v.id)
	})
}
