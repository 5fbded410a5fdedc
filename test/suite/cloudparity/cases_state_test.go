package cloudparity

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// stateCases are about servers, volumes and backends in states that make Nova or Cinder refuse a request. internal/openstacksim/REFUSALS.md
// names the place in their sources.
func stateCases() []Case {
	var all []Case
	// server is about a volume on a server. It is attached before the state begins where the request is a detach.
	server := func(name string, call cloud.Call, status int, text string, begin func(s *openstacksim.Sim, id string), end func(s *openstacksim.Sim, id string)) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			sim, id := b.simulation(t), b.server(t, "node-az1")
			r := Request{Call: call, As: Member, IDs: []string{id}}
			if call.Method == http.MethodDelete {
				r.IDs = append(r.IDs, b.attached(t, id))
			} else if call == attachMultiattach {
				r.Body = attachBody(b.volume(t, object{"volume_type": "multiattach"}))
			} else {
				r.Body = attachBody(b.volume(t, nil))
			}
			begin(sim, id)
			defer end(sim, id)
			return b.do(t, r).wantText(t, status, text)
		}})
	}
	becomes := func(status string) func(*openstacksim.Sim, string) {
		return func(s *openstacksim.Sim, id string) { s.SetServerStatus(id, status, "") }
	}
	cellDown := func(is bool) func(*openstacksim.Sim, string) {
		return func(s *openstacksim.Sim, id string) { s.SetCellDown(id, is) }
	}
	hostDown := func(is bool) func(*openstacksim.Sim, string) {
		return func(s *openstacksim.Sim, id string) { s.SetHostDown(id, is) }
	}
	active := becomes("ACTIVE")
	server("attach to a suspended server", attach, http.StatusConflict, "vm_state suspended", becomes("SUSPENDED"), active)
	server("attach to a rescued server", attach, http.StatusConflict, "vm_state rescued", becomes("RESCUE"), active)
	server("attach to a migrating server", attach, http.StatusConflict, "task_state migrating", becomes("MIGRATING"), active)
	server("attach to a server in a cell that is down", attach, http.StatusInternalServerError, "NovaException", cellDown(true), cellDown(false))
	server("attach a multiattach volume to an offloaded server", attachMultiattach, http.StatusBadRequest, "shelved-offloaded", becomes("SHELVED_OFFLOADED"), active)
	server("detach from a suspended server", detach, http.StatusConflict, "vm_state suspended", becomes("SUSPENDED"), active)
	server("detach from a rescued server", detach, http.StatusConflict, "vm_state rescued", becomes("RESCUE"), active)
	server("detach from a migrating server", detach, http.StatusConflict, "task_state migrating", becomes("MIGRATING"), active)
	server("detach where the host is down", detach, http.StatusConflict, "Service is unavailable at this time.", hostDown(true), hostDown(false))
	server("detach from a server in a cell that is down", detach, http.StatusInternalServerError, "NovaException", cellDown(true), cellDown(false))
	return append(append(all, maintenanceCases()...), frozenCases()...)
}

// maintenanceCases are about a volume in the status maintenance, which an administrator sets.
func maintenanceCases() []Case {
	inMaintenance := func(t *testing.T, b *Bed) string {
		id := b.volume(t, nil)
		set := func(status string) {
			b.do(t, Request{Call: volumeAction, As: Admin, IDs: []string{id}, Body: object{"os-reset_status": object{"status": status}}}).want(t, http.StatusAccepted)
		}
		set("maintenance")
		t.Cleanup(func() { set("available") })
		return id
	}
	return []Case{
		{Name: "add metadata to a volume in maintenance", Call: addMetadata, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			r := Request{Call: addMetadata, As: Member, IDs: []string{inMaintenance(t, b)}, Body: object{"metadata": object{"a": "b"}}}
			return b.do(t, r).wantText(t, http.StatusBadRequest, "is not allowed for volumes in maintenance status")
		}},
		{Name: "snapshot a volume in maintenance", Call: createSnapshot, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			r := Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(inMaintenance(t, b), nil)}
			return b.do(t, r).wantText(t, http.StatusBadRequest, "in maintenance mode")
		}},
	}
}

// frozenCases are about a storage backend that an administrator has frozen.
func frozenCases() []Case {
	frozen := func(name string, call cloud.Call, make func(t *testing.T, b *Bed) Request) Case {
		return Case{Name: name, Call: call, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			sim, r := b.simulation(t), make(t, b)
			sim.SetBackendsFrozen(true)
			defer sim.SetBackendsFrozen(false)
			r.Call, r.As = call, Member
			return b.do(t, r).wantText(t, http.StatusBadRequest, "not allowed on frozen storage backends")
		}}
	}
	return []Case{
		frozen("delete a volume on a frozen backend", deleteVolume, func(t *testing.T, b *Bed) Request { return Request{IDs: []string{b.volume(t, nil)}} }),
		frozen("snapshot a volume on a frozen backend", createSnapshot, func(t *testing.T, b *Bed) Request { return Request{Body: b.snapshotBody(b.volume(t, nil), nil)} }),
		frozen("delete a snapshot on a frozen backend", deleteSnapshot, func(t *testing.T, b *Bed) Request {
			return Request{IDs: []string{b.snapshot(t, b.volume(t, nil))}}
		}),
	}
}

// wantText fails the test unless the answer has the status and contains a text.
func (a Answer) wantText(t *testing.T, status int, text string) Answer {
	t.Helper()
	a.want(t, status)
	if !strings.Contains(a.String(), text) {
		t.Errorf("the answer %s does not contain %q", a, text)
	}
	return a
}
