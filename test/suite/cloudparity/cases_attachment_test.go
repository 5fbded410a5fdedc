package cloudparity

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// attachmentCases are about servers and the volumes that are attached to them.
func attachmentCases() []Case {
	return slices.Concat(serverCases(), attachCases(attach, ""), attachCases(attachMultiattach, " at 2.60"), readerCases(), multiattachCases(), detachCases(), shelvedCases())
}

func serverCases() []Case {
	read := func(name string, call cloud.Call, status int, as Role, id func(t *testing.T, b *Bed) string) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, IDs: []string{id(t, b)}})
		}}
	}
	node := func(t *testing.T, b *Bed) string { return b.idle(t, "node-az1") }
	fixed := func(id string) func(*testing.T, *Bed) string { return func(*testing.T, *Bed) string { return id } }
	busy := func(t *testing.T, b *Bed) string {
		server := node(t, b)
		b.attached(t, server)
		return server
	}
	tagged := func(t *testing.T, b *Bed) string {
		server := node(t, b)
		tag := func(to ...string) {
			b.do(t, Request{Call: replaceTags, As: Member, IDs: []string{server}, Body: object{"tags": append([]string{}, to...)}}).want(t, http.StatusOK)
		}
		tag("openshiftClusterID=tenant-a")
		t.Cleanup(func() { tag() })
		return server
	}
	return []Case{
		read("show a server", getServer, http.StatusOK, Member, node),
		read("show a server as reader", getServer, http.StatusOK, Reader, node),
		read("show a server as admin", getServer, http.StatusOK, Admin, node),
		read("show a server with a volume", getServer, http.StatusOK, Member, busy),
		read("show a server with a tag", getServer, http.StatusOK, Member, tagged),
		read("show an unknown server", getServer, http.StatusNotFound, Member, fixed(nothing)),
		read("show a server by an id that is no UUID", getServer, http.StatusNotFound, Member, fixed("x")),
		read("show a server of another project", getServer, http.StatusNotFound, Stranger, node),
		read("volumes of a server", listAttachments, http.StatusOK, Member, busy),
		read("volumes of a server as reader", listAttachments, http.StatusOK, Reader, busy),
		read("volumes of a server as admin", listAttachments, http.StatusOK, Admin, busy),
		read("volumes of a server without any", listAttachments, http.StatusOK, Member, node),
		read("volumes of an unknown server", listAttachments, http.StatusNotFound, Member, fixed(nothing)),
		read("volumes of a server by an id that is no UUID", listAttachments, http.StatusNotFound, Member, fixed("x")),
		read("volumes of another project's server", listAttachments, http.StatusNotFound, Stranger, node),
	}
}

func attachCases(call cloud.Call, at string) []Case {
	accepted := func(name string, as Role) Case {
		return Case{Name: name + at, Call: call, Status: http.StatusOK, As: as, Run: func(t *testing.T, b *Bed) Answer {
			server, id := b.server(t, "node-az1"), b.volume(t, nil)
			a := b.do(t, Request{Call: call, As: as, IDs: []string{server}, Body: attachBody(id)}).want(t, http.StatusOK)
			b.awaitVolume(t, id, "in-use")
			if got := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}}).Text("volume", "attachments", 0, "server_id"); got != server {
				t.Errorf("Cinder shows the volume at server %q, want %q", got, server)
			}
			return a
		}}
	}
	refused := func(name string, status int, as Role, prepare func(t *testing.T, b *Bed) (server, volume string)) Case {
		return Case{Name: name + at, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			server, id := prepare(t, b)
			return b.do(t, Request{Call: call, As: as, IDs: []string{server}, Body: attachBody(id)})
		}}
	}
	body := func(name string, body any) Case {
		return Case{Name: name + at, Call: call, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: Member, IDs: []string{b.server(t, "node-az1")}, Body: body})
		}}
	}
	return []Case{
		accepted("attach a volume", Member),
		accepted("attach a volume with an application credential", AppCred),
		refused("attach twice to one server", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
			server := b.server(t, "node-az1")
			return server, b.attached(t, server)
		}),
		refused("attach a plain volume to a second server", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az2"), b.attached(t, b.server(t, "node-az1"))
		}),
		refused("attach an unknown volume", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), nothing
		}),
		refused("attach to an unknown server", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return nothing, b.volume(t, nil)
		}),
		refused("attach to another project's server", http.StatusNotFound, Stranger, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), b.volume(t, nil)
		}),
		refused("attach a volume in error", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), b.broken(t)
		}),
		refused("attach a volume by an id that is no UUID", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), "x"
		}),
		refused("attach to a locked server", http.StatusConflict, Member, func(t *testing.T, b *Bed) (string, string) {
			server := b.server(t, "node-az2")
			id := b.volume(t, nil)
			b.lock(t, server)
			return server, id
		}),
		body("attach without a body's key", object{}),
		body("attach without a volume", object{"volumeAttachment": object{}}),
		body("attach with a field Nova does not know", object{"volumeAttachment": object{"volumeId": nothing, "colour": "blue"}}),
	}
}

// readerCases are about a role that may only read. Nova 26 lets it attach and detach. Nova 31 refuses that.
func readerCases() []Case {
	return []Case{
		{Name: "attach a volume as reader", Call: attach, Status: http.StatusOK, As: Reader, Run: func(t *testing.T, b *Bed) Answer {
			server, id := b.server(t, "node-az1"), b.volume(t, nil)
			a := b.do(t, Request{Call: attach, As: Reader, IDs: []string{server}, Body: attachBody(id)})
			if a.Status == http.StatusOK {
				b.awaitVolume(t, id, "in-use")
			}
			return a
		}},
		{Name: "detach a volume as reader", Call: detach, Status: http.StatusAccepted, As: Reader, Run: func(t *testing.T, b *Bed) Answer {
			server := b.server(t, "node-az1")
			id := b.attached(t, server)
			a := b.do(t, Request{Call: detach, As: Reader, IDs: []string{server, id}})
			if a.Status == http.StatusAccepted {
				b.awaitVolume(t, id, "available")
				b.awaitForgotten(t, server, id)
			}
			return a
		}},
	}
}

func multiattachCases() []Case {
	return []Case{
		{Name: "attach a multiattach volume below 2.60", Call: attach, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, object{"volume_type": "multiattach"})
			return b.do(t, Request{Call: attach, As: Member, IDs: []string{b.server(t, "node-az1")}, Body: attachBody(id)})
		}},
		{Name: "attach a multiattach volume to two servers", Call: attachMultiattach, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			_, _, a := b.shared(t)
			return a
		}},
		{
			Name: "attach a multiattach volume twice to one server", Call: attachMultiattach, Status: http.StatusBadRequest, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				servers, id, _ := b.shared(t)
				return b.do(t, Request{Call: attachMultiattach, As: Member, IDs: servers[:1], Body: attachBody(id)})
			},
		},
		{Name: "show a volume attached to two servers", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			_, id, _ := b.shared(t)
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
		}},
		{
			Name: "a multiattach volume stays in use after the first of two detaches", Call: detach, Status: http.StatusAccepted, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				servers, id, _ := b.shared(t)
				a := b.do(t, Request{Call: detach, As: Member, IDs: []string{servers[0], id}}).want(t, http.StatusAccepted)
				b.awaitAttachments(t, id, 1)
				return a
			},
		},
	}
}

// shared is a multiattach volume on both servers, with the answer to the second attach.
func (b *Bed) shared(t *testing.T) (servers []string, id string, second Answer) {
	t.Helper()
	id = b.volume(t, object{"volume_type": "multiattach"})
	servers = []string{b.server(t, "node-az1"), b.server(t, "node-az2")}
	for i, server := range servers {
		second = b.do(t, Request{Call: attachMultiattach, As: Member, IDs: []string{server}, Body: attachBody(id)}).want(t, http.StatusOK)
		b.awaitAttachments(t, id, i+1)
	}
	return servers, id, second
}

func detachCases() []Case {
	refused := func(name string, status int, as Role, prepare func(t *testing.T, b *Bed) (server, volume string)) Case {
		return Case{Name: name, Call: detach, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			server, id := prepare(t, b)
			return b.do(t, Request{Call: detach, As: as, IDs: []string{server, id}})
		}}
	}
	return []Case{
		{Name: "detach a volume", Call: detach, Status: http.StatusAccepted, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			server := b.server(t, "node-az1")
			id := b.attached(t, server)
			a := b.do(t, Request{Call: detach, As: Member, IDs: []string{server, id}}).want(t, http.StatusAccepted)
			b.awaitVolume(t, id, "available")
			b.awaitForgotten(t, server, id) // Nova updates its list last
			return a
		}},
		refused("detach what is not attached", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), b.volume(t, nil)
		}),
		refused("detach from a server it is not attached to", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az2"), b.attached(t, b.server(t, "node-az1"))
		}),
		refused("detach an unknown volume", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), nothing
		}),
		refused("detach from an unknown server", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return nothing, b.volume(t, nil)
		}),
		refused("detach from another project's server", http.StatusNotFound, Stranger, func(t *testing.T, b *Bed) (string, string) {
			server := b.server(t, "node-az1")
			return server, b.attached(t, server)
		}),
		refused("detach by an id that is no UUID", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
			return b.server(t, "node-az1"), "x"
		}),
		refused("detach from a locked server", http.StatusConflict, Member, func(t *testing.T, b *Bed) (string, string) {
			server := b.server(t, "node-az2")
			id := b.attached(t, server)
			b.lock(t, server)
			return server, id
		}),
		{
			Name: "an attach that fails on the host leaves the volume available", Call: attach, Status: http.StatusOK, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				server, id := b.server(t, "node-az1"), b.volume(t, nil)
				repair := b.fail(t, attachOperation)
				defer repair()
				a := b.do(t, Request{Call: attach, As: Member, IDs: []string{server}, Body: attachBody(id)}).want(t, http.StatusOK)
				b.awaitForgotten(t, server, id)
				return a
			},
		},
	}
}

// shelvedCases are about a server that is shelved after the volume is attached, or before.
func shelvedCases() []Case {
	shelved := func(name string, call cloud.Call, status int, attachedBefore bool) Case {
		return Case{Name: name, Call: call, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			sim, server, id := b.simulation(t), b.server(t, "node-az1"), ""
			if attachedBefore {
				id = b.attached(t, server)
			} else {
				id = b.volume(t, nil)
			}
			sim.SetServerStatus(server, "SHELVED_OFFLOADED", "")
			defer sim.SetServerStatus(server, "ACTIVE", "")
			r := Request{Call: call, As: Member, IDs: []string{server}, Body: attachBody(id)}
			if call.Method == http.MethodDelete {
				r.IDs, r.Body = append(r.IDs, id), nil
			}
			a := b.do(t, r).want(t, status)
			if status != http.StatusConflict {
				b.awaitVolume(t, id, map[bool]string{true: "available", false: "in-use"}[attachedBefore])
			} else if want := "while it is in vm_state shelved_offloaded"; !strings.Contains(a.String(), want) {
				t.Errorf("the refusal %s does not say %q", a, want)
			}
			return a
		}}
	}
	return []Case{
		shelved("attach to a shelved server", attach, http.StatusOK, false),
		shelved("attach to a shelved server below 2.20", at(attach, "2.19"), http.StatusConflict, false),
		shelved("detach from a shelved server", detach, http.StatusAccepted, true),
		shelved("detach from a shelved server below 2.20", at(detach, "2.19"), http.StatusConflict, true),
	}
}

// awaitForgotten waits until neither Nova nor Cinder has a volume attached any more.
func (b *Bed) awaitForgotten(t *testing.T, server, id string) {
	t.Helper()
	b.awaitVolume(t, id, "available")
	b.until(t, "Nova has forgotten the attachment", func() (bool, string) {
		a := b.do(t, Request{Call: listAttachments, As: Member, IDs: []string{server}}).want(t, http.StatusOK)
		for i := range a.List("volumeAttachments") {
			if a.Text("volumeAttachments", i, "volumeId") == id {
				return false, a.String()
			}
		}
		return true, a.String()
	})
}

// lock locks a server until the case ends. Call it after the steps whose cleanup needs the server unlocked.
func (b *Bed) lock(t *testing.T, server string) {
	t.Helper()
	b.do(t, Request{Call: serverAction, As: Member, IDs: []string{server}, Body: object{"lock": nil}}).want(t, http.StatusAccepted)
	t.Cleanup(func() {
		b.do(t, Request{Call: serverAction, As: Member, IDs: []string{server}, Body: object{"unlock": nil}}).want(t, http.StatusAccepted)
	})
}
