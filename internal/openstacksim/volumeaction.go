package openstacksim

import (
	"net/http"
	"slices"
	"strings"
)

// volumeAction serves POST /volumes/{id}/action, whose body names what to do.
func (s *Sim) volumeAction(c *call) reply {
	body, bad := c.decode()
	if bad != nil {
		return *bad
	}
	if len(body) == 0 {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	actions := map[string]func(*call, *volume, map[string]any) reply{
		"os-extend": s.extendVolume, "os-retype": s.retypeVolume, "os-reset_status": s.resetStatus,
		"os-set_bootable": s.setBootable, "os-force_delete": s.forceDelete,
	}
	name := sortedKeys(body)[0]
	act, ok := actions[name]
	if !ok {
		return fault(http.StatusBadRequest, "There is no such action: "+name+". Verify the request body and Content-Type header and try again.")
	}
	args, ok := body[name].(map[string]any)
	if !ok {
		return *invalid(name, body[name], python(body[name])+" is not of type 'object'")
	}
	v, missing := s.visible(c, c.vars["id"])
	if missing != nil {
		return *missing
	}
	return act(c, v, args)
}

func (s *Sim) extendVolume(c *call, v *volume, args map[string]any) reply {
	if extra := unexpected(args, []string{"new_size"}); extra != "" {
		return *invalid("os-extend", c.raw("os-extend"), extra)
	}
	if _, ok := args["new_size"]; !ok {
		return *invalid("os-extend", c.raw("os-extend"), "'new_size' is a required property")
	}
	newSize, bad := size("new_size", args["new_size"])
	if bad != nil {
		return *bad
	}
	if newSize <= v.size {
		return *inputError("New size for extend must be greater than current size. (current: %d, extended: %d).", v.size, newSize)
	}
	if bad := v.kind.checkSize(newSize); bad != nil {
		return *bad
	}
	before, expected := v.status, "available"
	if v.status == "in-use" && c.version >= 42 {
		expected = "in-use"
	}
	if v.status != expected {
		return fault(http.StatusBadRequest, "Invalid volume: Volume "+v.id+" status must be '{'status': '"+expected+"'}' to extend, currently "+v.status+".")
	}
	if over := s.reserveGrowth(v, newSize-v.size); over != nil {
		return *over
	}
	v.status = "extending"
	v.update()
	failure := s.operationFault(ExtendVolume)
	s.after(s.latency[ExtendVolume]+failure.Delay, func() {
		v.update()
		if failure = failure.try(func() error { return s.data.Extend(v.id, newSize) }); failure.fails() {
			v.status = "error_extending"
			s.addMessage(c, "VOLUME", v.id, v.project, "VOLUME_VOLUME_006_008", failure.message("extend volume:Volume Driver failed to extend volume."))
			return
		}
		v.status, v.size = before, newSize
	})
	return c.accepted(http.StatusAccepted)
}

func (s *Sim) retypeVolume(c *call, v *volume, args map[string]any) reply {
	if _, ok := args["new_type"]; !ok {
		return *invalid("os-retype", c.raw("os-retype"), "'new_type' is a required property")
	}
	policy := "never"
	if p, ok := args["migration_policy"]; ok {
		policy, _ = p.(string)
		if policy != "on-demand" && policy != "never" {
			return *invalid("migration_policy", p, python(p)+" is not one of ['on-demand', 'never']")
		}
	}
	name, _ := args["new_type"].(string)
	kind, bad := s.typeNamed(c, name)
	if bad != nil {
		return *bad
	}
	if !slices.Contains([]string{"available", "in-use"}, v.status) || kind == v.kind {
		return fault(http.StatusBadRequest, "Invalid volume: Retype needs volume to be in available or in-use state, not be part of an active migration or a "+
			"consistency group, requested type has to be different that the one from the volume, and for in-use volumes front-end qos specs cannot change.")
	}
	before := v.status
	v.status = "retyping"
	v.update()
	failure := s.operationFault(RetypeVolume)
	s.after(s.latency[RetypeVolume]+failure.Delay, func() {
		v.status = before
		v.update()
		if failure.fails() || policy == "never" && kind.ExtraSpecs["volume_backend_name"] != "" && !compatible(kind, v.kind) {
			return // Cinder gives up without a word
		}
		v.kind, v.multiattach = kind, kind.ExtraSpecs["multiattach"] == "<is> True"
		v.host = s.hostOf(v)
	})
	return c.accepted(http.StatusAccepted)
}

func (s *Sim) resetStatus(c *call, v *volume, args map[string]any) reply {
	if !c.token.admin() {
		return forbidden("volume_extension:volume_admin_actions:reset_status")
	}
	if status, _ := args["status"].(string); status != "" {
		v.status = strings.ToLower(status)
	}
	if status, _ := args["attach_status"].(string); strings.EqualFold(status, "detached") {
		v.attachments = nil
	}
	v.update()
	return c.accepted(http.StatusAccepted)
}

func (s *Sim) setBootable(c *call, v *volume, args map[string]any) reply {
	v.bootable = args["bootable"] == true || args["bootable"] == "true" || args["bootable"] == "True"
	v.update()
	return c.accepted(http.StatusOK)
}

func (s *Sim) forceDelete(c *call, v *volume, _ map[string]any) reply {
	if !c.token.admin() {
		return forbidden("volume_extension:volume_admin_actions:force_delete")
	}
	v.attachments = nil
	s.removeVolume(c, v)
	return c.accepted(http.StatusAccepted)
}
