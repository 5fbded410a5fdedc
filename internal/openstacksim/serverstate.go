package openstacksim

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// vmStates are vm_state and power_state of Nova for each status, and the task where the status stands for one
// (_STATE_MAP in nova/api/openstack/common.py).
var vmStates = map[string]struct {
	vm    string
	power int
	task  string
}{
	"ACTIVE": {"active", 1, ""}, "SHUTOFF": {"stopped", 4, ""}, "ERROR": {"error", 0, ""}, "BUILD": {"building", 0, "spawning"},
	"PAUSED": {"paused", 3, ""}, "SUSPENDED": {"suspended", 4, ""}, "DELETED": {"deleted", 0, ""}, "SHELVED": {"shelved", 4, ""},
	"SHELVED_OFFLOADED": {"shelved_offloaded", 4, ""}, "RESCUE": {"rescued", 1, ""}, "VERIFY_RESIZE": {"resized", 1, ""},
	"SOFT_DELETED": {"soft-delete", 0, ""}, "UNKNOWN": {"unknown", 0, ""},
	"RESIZE": {"active", 1, "resize_migrating"}, "REVERT_RESIZE": {"resized", 1, "resize_reverting"}, "MIGRATING": {"active", 1, "migrating"},
	"REBOOT": {"active", 1, "rebooting"}, "HARD_REBOOT": {"active", 1, "rebooting_hard"}, "REBUILD": {"active", 1, "rebuilding"},
	"PASSWORD": {"active", 1, "updating_password"},
}

func (v *server) vmState() string { return vmStates[v.Status].vm }

// offloaded reports whether the server has no host.
func (v *server) offloaded() bool { return v.Status == "SHELVED_OFFLOADED" }

// SetServerStatus sets the status of a server (ACTIVE, SHUTOFF, ERROR, …) and its task state. "" is the task that the status stands for, such
// as that of MIGRATING, or none. A server that is shelved and offloaded leaves its host with its volumes, and comes back with them.
func (s *Sim) SetServerStatus(id, status, taskState string) {
	s.onServer(id, func(v *server) {
		before := v.offloaded()
		v.Status, v.TaskState, v.updated = status, cmp.Or(taskState, vmStates[status].task), now()
		switch after := v.offloaded(); {
		case after && !before:
			s.offload(v)
		case before && !after:
			s.unshelve(v)
		}
	})
}

// onServer changes a server, if there is one of that ID.
func (s *Sim) onServer(id string, change func(*server)) {
	defer s.lock()()
	if v := s.servers[id]; v != nil {
		change(v)
	}
}

// SetServerTags replaces the tags of a server.
func (s *Sim) SetServerTags(id string, tags ...string) {
	s.onServer(id, func(v *server) { v.Tags = tags })
}

// SetHostDown stops the nova-compute of the host of a server, or starts it. Nova keeps the status of the server.
func (s *Sim) SetHostDown(id string, down bool) {
	s.onServer(id, func(v *server) { v.hostDown = down })
}

// SetCellDown makes the cell database of a server unreachable, or reachable: Nova answers 500 to every request for the server.
func (s *Sim) SetCellDown(id string, down bool) {
	s.onServer(id, func(v *server) { v.cellDown = down })
}

// mustBe refuses a request that Nova refuses in the present state of a server.
func (v *server) mustBe(c *call, action string, states ...string) {
	if v.locked && !c.token.admin() {
		panic(fault(http.StatusConflict, "Instance "+v.ID+" is locked"))
	}
	attr, state := "vm_state", v.vmState()
	if slices.Contains(states, state) {
		if v.TaskState == "" {
			return
		}
		attr, state = "task_state", v.TaskState
	}
	panic(fault(http.StatusConflict, "Cannot '"+action+"' instance "+v.ID+" while it is in "+attr+" "+state))
}

// rpcTimeout is how long Nova waits for an answer of a compute host (rpc_response_timeout).
const rpcTimeout = time.Minute

// unexpected500 is the reply of Nova after an exception that its API does not expect.
func unexpected500(class string) reply {
	return fault(http.StatusInternalServerError, "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class '"+class+"'>")
}

func messagingTimeout() reply { return unexpected500("oslo_messaging.exceptions.MessagingTimeout") }
