package openstacksim

import (
	"net/http"
	"regexp"
	"strings"
)

// serverAction serves POST /servers/{id}/action. Stopping and starting take no time.
func (s *Sim) serverAction(c *call) reply {
	body := c.decode()
	if len(body) == 0 {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	actions := map[string]func(*call, *server, any){
		"lock": lockServer, "unlock": unlockServer, "os-stop": stopServer, "os-start": startServer, "os-resetState": resetServer,
	}
	name := sortedKeys(body)[0]
	act, ok := actions[name]
	if !ok {
		return fault(http.StatusBadRequest, "There is no such action: "+name)
	}
	v := s.visibleServer(c, c.vars["id"])
	act(c, v, body[name])
	v.updated = now()
	return reply{status: http.StatusAccepted}
}

// tagText is what Nova takes as a tag (nova/api/validation/parameter_types.py).
var tagText = regexp.MustCompile(`^[^,/]{1,60}$`)

func (s *Sim) replaceTags(c *call) reply {
	list, ok := c.decode()["tags"].([]any)
	if !ok {
		return fault(http.StatusBadRequest, "'tags' is a required property")
	}
	tags := []string{}
	for i, tag := range list {
		text, ok := tag.(string)
		if !ok || !tagText.MatchString(text) {
			return invalid("tags", list, python(list[i])+" does not match '^[^,/]*$'")
		}
		tags = append(tags, text)
	}
	v := s.visibleServer(c, c.vars["id"])
	v.Tags = tags
	return reply{status: http.StatusOK, body: obj{{"tags", tags}}}
}

func lockServer(c *call, v *server, args any) {
	if !v.locked {
		v.locked = true
		if c.version >= 73 {
			v.reason = digString(args, "locked_reason")
		}
	}
}

func unlockServer(_ *call, v *server, _ any) {
	v.locked, v.reason = false, ""
}

func stopServer(c *call, v *server, _ any) {
	v.mustBe(c, "stop", "active", "error")
	v.Status = "SHUTOFF"
}

func startServer(c *call, v *server, _ any) {
	v.mustBe(c, "start", "stopped")
	v.Status = "ACTIVE"
}

func resetServer(c *call, v *server, args any) {
	c.adminOnly("os_compute_api:os-admin-actions:reset_state")
	state := digString(args, "state")
	if state != "active" && state != "error" {
		panic(invalid("state", dig(args, "state"), python(dig(args, "state"))+" is not one of ['active', 'error']"))
	}
	v.Status, v.TaskState = strings.ToUpper(state), ""
}
