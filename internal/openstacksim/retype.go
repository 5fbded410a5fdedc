package openstacksim

import (
	"net/http"
	"slices"
)

func (s *Sim) retypeVolume(c *call, v *volume, args map[string]any) reply {
	policy, kind := s.parseRetype(c, args)
	kind.checkSize(v.size)
	if kind.multiattach() != v.multiattach && v.status != "available" {
		return inputError("Invalid volume_type passed, retypes affecting multiattach are only allowed on available volumes, the specified volume however "+
			"currently has a status of: %s.", v.status)
	}
	s.reserveType(v, kind)
	if !slices.Contains([]string{"available", "in-use"}, v.status) || kind == v.kind {
		return fault(http.StatusBadRequest, "Invalid volume: Retype needs volume to be in available or in-use state, not be part of an active migration or a "+
			"consistency group, requested type has to be different that the one from the volume, and for in-use volumes front-end qos specs cannot change.")
	}
	before := v.status
	v.turn("retyping")
	failure := s.operationFault(RetypeVolume)
	s.after(s.latency[RetypeVolume]+failure.Delay, func() {
		v.turn(before)
		// Cinder retypes in place only if the encryption is the same (retype in volume/manager.py).
		moves := kind.ExtraSpecs["volume_backend_name"] != "" && !compatible(kind, v.kind) || (kind.Encryption == nil) != (v.kind.Encryption == nil)
		if failure.fails() || moves && (policy == "never" || len(s.snapshotsOf(v)) > 0) {
			return // Cinder stops without an error
		}
		v.kind, v.multiattach = kind, kind.multiattach()
		v.host = s.hostOf(v)
	})
	return c.accepted(http.StatusAccepted)
}

// parseRetype reads the request of a retype.
func (s *Sim) parseRetype(c *call, args map[string]any) (policy string, kind *VolumeType) {
	if extra := unexpected(args, []string{"new_type", "migration_policy"}); extra != "" {
		panic(invalid("os-retype", c.raw("os-retype"), extra))
	}
	if _, ok := args["new_type"]; !ok {
		panic(invalid("os-retype", c.raw("os-retype"), "'new_type' is a required property"))
	}
	name, ok := args["new_type"].(string)
	if !ok {
		panic(invalid("new_type", args["new_type"], python(args["new_type"])+" is not of type 'string'"))
	}
	policy = "never"
	if p, ok := args["migration_policy"]; ok {
		policy, _ = p.(string)
		if policy != "on-demand" && policy != "never" {
			panic(invalid("migration_policy", p, python(p)+" is not one of ['on-demand', 'never']"))
		}
	}
	return policy, s.typeNamed(c, name)
}

func (t *VolumeType) multiattach() bool { return t.ExtraSpecs["multiattach"] == "<is> True" }

// reserveType checks the quotas of the new type of a volume. The volume already counts in those of the project.
func (s *Sim) reserveType(v *volume, kind *VolumeType) {
	used := s.used(v.project)
	size, count := v.size, 1
	for _, p := range s.snapshotsOf(v) {
		size += p.size
	}
	if r := "gigabytes_" + kind.Name; s.exceeds(v.project, r, size, used) {
		panic(overGigabytes(r, v.size, s.limit(v.project, r), used[r]))
	}
	if r := "volumes_" + kind.Name; s.exceeds(v.project, r, count, used) {
		panic(overVolumes(r, s.limit(v.project, r)))
	}
}
