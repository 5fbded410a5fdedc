package openstacksim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// draft is a requested volume during the checks.
type draft struct {
	size              int
	zone              string
	kind              *VolumeType
	snapshot          *snapshot
	source            *volume
	backup            *backup
	metadata          map[string]string
	name, description *string
	multiattach       bool // requested in the body, which Victoria allows
}

func inputError(format string, args ...any) reply {
	return fault(http.StatusBadRequest, "Invalid input received: "+fmt.Sprintf(format, args...))
}

var createKeys = []string{
	"name", "description", "display_name", "display_description", "volume_type", "metadata", "snapshot_id", "source_volid",
	"consistencygroup_id", "size", "availability_zone", "multiattach", "image_id", "imageRef", "group_id", "backup_id",
}

func (s *Sim) createVolume(c *call) reply {
	body := c.object("volume", c.version >= 53, createKeys...)
	c.checkHints()
	d := s.draftVolume(c, body)
	s.refusesReader(c, "volume:create")
	s.checkTypeSize(d)
	s.checkSource(d)
	s.checkSize(d)
	s.placeVolume(d)
	s.reserve(c.token.project.ID, d.kind, d.size)
	v := &volume{
		id: s.newID(), project: c.token.project.ID, user: c.token.user.ID, name: d.name, description: d.description,
		status: "creating", zone: d.zone, size: d.size, kind: d.kind, metadata: d.metadata, clock: s.hostClock(),
		multiattach: d.multiattach || d.kind.ExtraSpecs["multiattach"] == "<is> True",
	}
	v.created = v.clock.exact()
	if d.snapshot != nil {
		v.snapshotID = d.snapshot.id
	}
	if d.source != nil {
		v.sourceID, v.bootable = d.source.id, d.source.bootable
	}
	s.volumes[v.id] = v
	answer := v.view(s, c, created)
	s.buildVolume(c, v, d.backup)
	return reply{status: http.StatusAccepted, body: obj{{"volume", answer}}}
}

// buildVolume is what the scheduler and the backend do after the reply.
func (s *Sim) buildVolume(c *call, v *volume, b *backup) {
	from, fill := cmp.Or(v.snapshotID, v.sourceID), s.data.Make
	if b != nil {
		from = b.id
		if s.config.CephBackups {
			fill = s.data.MakeShifted
		}
	}
	failure := s.operationFault(CreateVolume).try(func() error { return fill(v.id, from, v.size) })
	building := func() bool { return s.volumes[v.id] == v && v.status == "creating" }
	takes := s.takes(CreateVolume, deref(v.name))
	s.after(takes/2, func() {
		if building() {
			v.host = s.hostOf(v)
			v.update()
		}
	})
	s.after(takes+failure.Delay, func() {
		if !building() {
			return
		}
		defer s.effect(CreateVolume, v, "", c.begun)
		v.update()
		v.created = v.created.Truncate(time.Second)
		if failure.fails() {
			v.status, v.host = "error", "" // no backend is left to try
			s.addMessage(c, "VOLUME", v.id, v.project, "VOLUME_VOLUME_001_003", "schedule allocate volume:Could not find any available weighted backend.")
			if failure.Full {
				return
			}
			s.addMessage(c, "VOLUME", v.id, v.project, "VOLUME_VOLUME_008_012", failure.message("create volume from backend storage:Driver failed to create the volume."))
			return
		}
		if b != nil {
			s.restore(c, v, b, func() error { return nil }) // the bytes are there
			return
		}
		v.status = "available"
	})
}

func (s *Sim) hostOf(v *volume) string {
	pool := cmp.Or(v.kind.ExtraSpecs["volume_backend_name"], "standard")
	return "sim@backend-" + v.zone + "#" + pool
}

// draftVolume reads the body and looks up the objects that it names.
func (s *Sim) draftVolume(c *call, body map[string]any) *draft {
	d := &draft{}
	d.size = size("size", body["size"])
	d.metadata = metadataOf(body["metadata"], "'object', 'null'")
	name255(body, "name", "description", "display_name", "display_description")
	ids := map[string]string{}
	for _, field := range []string{"snapshot_id", "source_volid", "consistencygroup_id", "backup_id"} {
		ids[field] = optionalUUID(body, field)
	}
	d.name, d.description = firstText(body, "name", "display_name"), firstText(body, "description", "display_description")
	d.zone = textOrNull(body, "availability_zone", 1)
	kind := textOrNull(body, "volume_type", 0)
	if multi, given := body["multiattach"]; given && multi != nil && !slices.Contains(booleans, multi) {
		panic(invalid("multiattach", multi, python(multi)+" is not valid under any of the given schemas"))
	}
	s.findSources(c, d, body, kind, ids)
	return d
}

// findSources looks up the objects in the body: type, snapshot, source volume, backup. This cloud has no groups and images.
func (s *Sim) findSources(c *call, d *draft, body map[string]any, kind string, ids map[string]string) {
	if kind != "" {
		d.kind = s.typeNamed(c, kind)
	}
	if id := ids["snapshot_id"]; id != "" {
		d.snapshot = s.visibleSnapshot(c, id)
	}
	if id := ids["source_volid"]; id != "" {
		d.source = s.visible(c, id)
	}
	if id := ids["consistencygroup_id"]; id != "" {
		panic(fault(http.StatusNotFound, "Group "+id+" could not be found."))
	}
	if id, _ := body["group_id"].(string); id != "" && c.version >= 13 {
		panic(fault(http.StatusNotFound, "Group "+id+" could not be found."))
	}
	if image := firstString(body, "imageRef", "image_id"); image != "" {
		panic(fault(http.StatusBadRequest, "Invalid image identifier or unable to access requested image."))
	}
	if id := ids["backup_id"]; id != "" {
		d.backup = s.visibleBackup(c, id)
	}
	if multi := body["multiattach"]; multi != nil && isTrue(bare(multi)) {
		if d.multiattach = c.beforeZed; d.multiattach {
			return
		}
		panic(fault(http.StatusBadRequest, "multiattach parameter has been removed. The default behavior is to use multiattach enabled volume types. "+
			"Contact your administrator to create a multiattach enabled volume type and use it to create multiattach volumes."))
	}
}

func firstText(body map[string]any, keys ...string) *string {
	for _, k := range keys {
		if v, ok := body[k]; ok {
			return optional(v)
		}
	}
	return nil
}

func firstString(body map[string]any, keys ...string) string {
	for _, k := range keys {
		if s, _ := body[k].(string); s != "" {
			return s
		}
	}
	return ""
}

// compatible reports whether a volume of one type can be created from an object of another: they share a backend.
func compatible(a, b *VolumeType) bool {
	return a.ExtraSpecs["volume_backend_name"] == b.ExtraSpecs["volume_backend_name"]
}

// checkSource checks the source of the volume and takes type and size from it.
func (s *Sim) checkSource(d *draft) {
	if d.source != nil && d.kind != nil && d.kind != d.source.kind && !compatible(d.kind, d.source.kind) {
		panic(inputError("Invalid volume_type provided: %s (requested type is not compatible; either match source volume, or omit type argument).", d.kind.ID))
	}
	if d.snapshot != nil && d.kind != nil && d.kind != d.snapshot.volume.kind && !compatible(d.kind, d.snapshot.volume.kind) {
		panic(inputError("Invalid volume_type provided: %s (requested type is not compatible; recommend omitting the type argument).", d.kind.ID))
	}
	if d.snapshot != nil && d.source != nil {
		panic(inputError("May specify only one of backup, imageRef, snapshot, source volume"))
	}
	if d.snapshot != nil && d.snapshot.status != "available" {
		panic(fault(http.StatusBadRequest, "Invalid snapshot: Originating snapshot status must be one of 'available' values"))
	}
	if d.backup != nil && d.backup.status != "available" {
		panic(fault(http.StatusBadRequest, "Invalid backup: Originating backup status must be one of 'available' values"))
	}
	if d.source != nil && !slices.Contains([]string{"available", "in-use"}, d.source.status) {
		panic(fault(http.StatusBadRequest, "Invalid volume: Originating source volume status must be one of 'available, in-use' values"))
	}
}

// origin is what the volume is copied from: size, type, and the refusal of a smaller volume. A backup has no type.
func (d *draft) origin() (size int, kind *VolumeType, smaller string) {
	switch {
	case d.source != nil:
		return d.source.size, d.source.kind, "Volume size '%d'GB cannot be smaller than original volume size  %dGB. They must be >= original volume size."
	case d.snapshot != nil:
		return d.snapshot.size, d.snapshot.volume.kind, "Volume size '%d'GB cannot be smaller than the snapshot size %dGB. They must be >= original snapshot size."
	case d.backup != nil:
		return d.backup.size, nil, "Volume size %dGB cannot be smaller than the backup size %dGB. It must be >= backup size."
	}
	return 0, nil, ""
}

func (s *Sim) checkTypeSize(d *draft) {
	from, _, _ := d.origin()
	kind, size := cmp.Or(d.kind, s.typeByName(s.defaultType)), cmp.Or(d.size, from)
	if kind != nil && size > 0 {
		kind.checkSize(size)
	}
}

// checkSize refuses a size that the extra specs of the type do not allow.
func (k *VolumeType) checkSize(size int) {
	if least, err := strconv.Atoi(k.ExtraSpecs["provisioning:min_vol_size"]); err == nil && size < least {
		panic(inputError("Specified volume size of '%d' is less than the minimum required size of '%d' for volume type '%s'.", size, least, k.Name))
	}
	if most, err := strconv.Atoi(k.ExtraSpecs["provisioning:max_vol_size"]); err == nil && size > most {
		panic(inputError("Specified volume size of '%d' is greater than the maximum allowable size of '%d' for volume type '%s'.", size, most, k.Name))
	}
}

func (s *Sim) checkSize(d *draft) {
	from, kind, smaller := d.origin()
	d.size = cmp.Or(d.size, from)
	switch {
	case d.size == 0:
		panic(fault(http.StatusBadRequest, badRequestMessage))
	case d.size < from:
		panic(inputError(smaller, d.size, from))
	}
	d.kind = cmp.Or(d.kind, kind, s.typeByName(s.defaultType))
	if d.kind == nil {
		panic(fault(http.StatusInternalServerError, "The request cannot be fulfilled as the default volume type "+s.defaultType+" cannot be found."))
	}
}

// zonesKey is the extra spec that ties a type to zones.
const zonesKey = "RESKEY:availability_zones"

// placeVolume chooses the zone: the requested one, else that of the source, else that of the type, else the default of Cinder.
func (s *Sim) placeVolume(d *draft) {
	allowed := zoneNames(s.volumeZones)
	var typeZones []string
	if spec, ok := d.kind.ExtraSpecs[zonesKey]; ok {
		typeZones = each(strings.Split(spec, ","), strings.TrimSpace)
		allowed = slices.DeleteFunc(allowed, func(z string) bool { return !slices.Contains(typeZones, z) })
		if len(allowed) == 0 {
			panic(fault(http.StatusBadRequest, "Volume type is only supported in these availability zones: "+python(each(typeZones, func(z string) any { return z }))))
		}
	}
	home := ""
	if d.snapshot != nil {
		home = d.snapshot.volume.zone
	}
	if d.source != nil {
		home = d.source.zone
	}
	d.zone = cmp.Or(d.zone, home)
	if d.zone == "" && typeZones == nil && len(s.volumeZones) > 0 {
		d.zone = s.volumeZones[0].name
	}
	if d.zone == "" {
		d.zone = allowed[0]
	}
	if !slices.Contains(allowed, d.zone) {
		if !s.config.ZoneFallback {
			panic(fault(http.StatusBadRequest, "Availability zone '"+d.zone+"' is invalid."))
		}
		d.zone = s.volumeZones[0].name
	}
	if home != "" && home != d.zone {
		what := "snapshot"
		if d.source != nil {
			what = "source volume"
		}
		panic(inputError("Volume must be in the same availability zone as the %s", what))
	}
}
