package openstacksim

import (
	"net/http"
	"strings"
)

// volumeAction serves POST /volumes/{id}/action; the body names the action.
func (s *Sim) volumeAction(c *call) reply {
	body := c.decode()
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
		return invalid(name, body[name], python(body[name])+" is not of type 'object'")
	}
	v := s.visible(c, c.vars["id"])
	if name == "os-extend" || name == "os-retype" {
		s.refusesReader(c, "volume:"+strings.TrimPrefix(name, "os-"))
	}
	return act(c, v, args)
}

func (s *Sim) extendVolume(c *call, v *volume, args map[string]any) reply {
	if extra := unexpected(args, []string{"new_size"}); extra != "" {
		return invalid("os-extend", c.raw("os-extend"), extra)
	}
	if _, ok := args["new_size"]; !ok {
		return invalid("os-extend", c.raw("os-extend"), "'new_size' is a required property")
	}
	newSize := size("new_size", args["new_size"])
	if newSize <= v.size {
		return inputError("New size for extend must be greater than current size. (current: %d, extended: %d).", v.size, newSize)
	}
	v.kind.checkSize(newSize)
	before, expected := v.status, "available"
	if v.status == "in-use" && c.version >= 42 {
		expected = "in-use"
	}
	if v.status != expected {
		return fault(http.StatusBadRequest, "Invalid volume: Volume "+v.id+" status must be '{'status': '"+expected+"'}' to extend, currently "+v.status+".")
	}
	s.reserveGrowth(v, newSize-v.size)
	v.turn("extending")
	failure := s.operationFault(ExtendVolume)
	s.after(s.takes(ExtendVolume, deref(v.name))+failure.Delay, func() {
		defer s.effect(ExtendVolume, v, "", c.begun)
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

func (s *Sim) resetStatus(c *call, v *volume, args map[string]any) reply {
	c.adminOnly("volume_extension:volume_admin_actions:reset_status")
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
	c.adminOnly("volume_extension:volume_admin_actions:force_delete")
	v.attachments = nil
	s.removeVolume(c, v)
	return c.accepted(http.StatusAccepted)
}
