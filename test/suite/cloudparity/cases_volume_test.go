package cloudparity

import (
	"net/http"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// volumeCases are about creating, reading and deleting one volume.
func volumeCases() []Case {
	var all []Case
	refused := func(name string, status int, as Role, body func(t *testing.T, b *Bed) any) {
		all = append(all, Case{Name: name, Call: createVolume, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.create(t, Request{Call: createVolume, As: as, Body: body(t, b)})
		}})
	}
	fields := func(f object) func(*testing.T, *Bed) any {
		return func(t *testing.T, b *Bed) any { return b.volumeBody(f) }
	}
	made := func(name string, as Role, f func(t *testing.T, b *Bed) object) {
		all = append(all, Case{Name: name, Call: createVolume, Status: http.StatusAccepted, As: as, Run: func(t *testing.T, b *Bed) Answer {
			a := b.create(t, Request{Call: createVolume, As: as, Body: b.volumeBody(f(t, b))})
			if b.done(t, a, http.StatusAccepted) {
				b.awaitVolume(t, a.Text("volume", "id"), "available")
			}
			return a
		}})
	}
	plain := func(f object) func(*testing.T, *Bed) object { return func(*testing.T, *Bed) object { return f } }

	made("create with nothing but a name and a size", Member, plain(nil))
	made("create without a name", Member, plain(object{"name": nil}))
	made("create with zone type description and metadata", Member, plain(object{
		"availability_zone": "az2", "volume_type": "fast", "description": "made by the parity suite", "metadata": object{"cluster": "k1"},
	}))
	made("create ignores a field Cinder does not know", Member, plain(object{"colour": "blue"}))
	made("create of a multiattach type", Member, plain(object{"volume_type": "multiattach"}))
	made("create as reader", Reader, plain(nil))
	made("create as admin", Admin, plain(nil))
	made("create with an application credential", AppCred, plain(nil))
	made("create with a type by id", Member, func(t *testing.T, b *Bed) object { return object{"volume_type": b.typeID(t, "fast")} })
	made("create from a volume takes its zone and type", Member, func(t *testing.T, b *Bed) object {
		return object{"source_volid": b.volume(t, object{"availability_zone": "az2", "volume_type": "fast"})}
	})
	made("create from a snapshot takes its zone and type", Member, func(t *testing.T, b *Bed) object {
		return object{"size": 2, "snapshot_id": b.snapshot(t, b.volume(t, object{"availability_zone": "az2", "volume_type": "fast"}))}
	})

	made("create of a type of one zone takes that zone", Member, func(t *testing.T, b *Bed) object {
		return object{"volume_type": b.volumeType(t, oneZone)}
	})
	refused("create of a type of one zone in another", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"volume_type": b.volumeType(t, oneZone), "availability_zone": "az1"})
	})
	refused("create of a private type", http.StatusNotFound, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"volume_type": b.volumeType(t, object{"os-volume-type-access:is_public": false})})
	})
	refused("create in an unknown zone", http.StatusBadRequest, Member, fields(object{"availability_zone": "nowhere"}))
	refused("create of an unknown type", http.StatusNotFound, Member, fields(object{"volume_type": "nosuch"}))
	refused("create of size zero", http.StatusBadRequest, Member, fields(object{"size": 0}))
	refused("create of negative size", http.StatusBadRequest, Member, fields(object{"size": -1}))
	refused("create of a size that is no number", http.StatusBadRequest, Member, fields(object{"size": "big"}))
	refused("create without a size", http.StatusBadRequest, Member, fields(object{"size": nil}))
	refused("create with multiattach in the body", http.StatusBadRequest, Member, fields(object{"multiattach": true}))
	refused("create with metadata that is no text", http.StatusBadRequest, Member, fields(object{"metadata": object{"a": 1}}))
	refused("create with a metadata value too long", http.StatusBadRequest, Member, fields(object{"metadata": object{"a": long(256)}}))
	refused("create with a name too long", http.StatusBadRequest, Member, fields(object{"name": long(256)}))
	refused("create without a volume in the body", http.StatusBadRequest, Member, func(*testing.T, *Bed) any { return object{} })
	refused("create with a body that is no JSON", http.StatusBadRequest, Member, func(*testing.T, *Bed) any { return "{" })
	refused("create from an unknown snapshot", http.StatusNotFound, Member, fields(object{"snapshot_id": nothing}))
	refused("create from an unknown volume", http.StatusNotFound, Member, fields(object{"source_volid": nothing}))
	refused("create from a snapshot id that is no UUID", http.StatusBadRequest, Member, fields(object{"snapshot_id": "x"}))
	refused("create from a volume id that is no UUID", http.StatusBadRequest, Member, fields(object{"source_volid": "x"}))
	refused("create beyond the quota of the type", http.StatusRequestEntityTooLarge, Member, fields(object{"size": 2000, "volume_type": "fast"}))
	refused("create beyond the quota of gigabytes", http.StatusRequestEntityTooLarge, Member, fields(object{"size": 100000}))
	refused("create from a snapshot smaller than it", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"size": 1, "snapshot_id": b.snapshot(t, b.volume(t, object{"size": 2}))})
	})
	refused("create from a volume smaller than it", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"size": 1, "source_volid": b.volume(t, object{"size": 2})})
	})
	refused("create from a snapshot in another zone", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"availability_zone": "az2", "snapshot_id": b.snapshot(t, b.volume(t, object{"availability_zone": "az1"}))})
	})
	refused("create from a volume in another zone", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"availability_zone": "az2", "source_volid": b.volume(t, object{"availability_zone": "az1"})})
	})
	refused("create from a snapshot of another type", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"volume_type": "fast", "snapshot_id": b.snapshot(t, b.volume(t, nil))})
	})
	refused("create from a volume of another type", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		return b.volumeBody(object{"volume_type": "fast", "source_volid": b.volume(t, nil)})
	})
	refused("create from a snapshot and a volume", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) any {
		source := b.volume(t, nil)
		return b.volumeBody(object{"source_volid": source, "snapshot_id": b.snapshot(t, source)})
	})
	all = append(all, Case{
		Name: "create under another project's address", Call: createVolume, Status: http.StatusBadRequest, As: Member,
		Run: func(t *testing.T, b *Bed) Answer {
			return b.create(t, Request{Call: createVolume, As: Member, Of: Stranger, Body: b.volumeBody(nil)})
		},
	})
	for name, body := range map[string]object{
		"create from an unknown backup":               {"backup_id": nothing},
		"create from a backup id that is no UUID":     {"backup_id": "x"},
		"create at 3.47 in an unknown zone":           {"availability_zone": "nowhere"},
		"create at 3.47 beyond the quota of the type": {"size": 2000, "volume_type": "fast"},
	} {
		status := map[string]int{
			"create from an unknown backup": http.StatusNotFound, "create at 3.47 beyond the quota of the type": http.StatusRequestEntityTooLarge,
		}[name]
		if status == 0 {
			status = http.StatusBadRequest
		}
		all = append(all, Case{Name: name, Call: createVolumeFromBackup, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.create(t, Request{Call: createVolumeFromBackup, As: Member, Body: b.volumeBody(body)})
		}})
	}
	all = append(all, Case{
		Name: "create at 3.47 without a backup", Call: createVolumeFromBackup, Status: http.StatusAccepted, As: Member,
		Run: func(t *testing.T, b *Bed) Answer {
			a := b.create(t, Request{Call: createVolumeFromBackup, As: Member, Body: b.volumeBody(nil)}).want(t, http.StatusAccepted)
			b.awaitVolume(t, a.Text("volume", "id"), "available")
			return a
		},
	})
	return slices.Concat(all, hintCases(), sizeCases(), readCases(), deleteCases(), midwayCases())
}

func readCases() []Case {
	show := func(name string, as Role, f object) Case {
		return Case{Name: name, Call: getVolume, Status: http.StatusOK, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: as, IDs: []string{b.volume(t, f)}})
		}}
	}
	missing := func(name string, as Role, id func(t *testing.T, b *Bed) string) Case {
		return Case{Name: name, Call: getVolume, Status: http.StatusNotFound, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: as, IDs: []string{id(t, b)}})
		}}
	}
	return []Case{
		show("show a volume", Member, nil),
		show("show a volume with everything", Member, object{
			"availability_zone": "az2", "volume_type": "fast", "description": "made by the parity suite", "metadata": object{"cluster": "k1", "a": "b"},
		}),
		show("show a multiattach volume", Member, object{"volume_type": "multiattach"}),
		show("show a volume as reader", Reader, nil),
		show("show a volume as admin", Admin, nil),
		{Name: "show an attached volume", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{b.attached(t, b.server(t, "node-az1"))}})
		}},
		{Name: "show an attached volume as admin", Call: getVolume, Status: http.StatusOK, As: Admin, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Admin, IDs: []string{b.attached(t, b.server(t, "node-az1"))}})
		}},
		{Name: "show a volume made from a volume", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{b.volume(t, object{"source_volid": b.volume(t, nil)})}})
		}},
		{Name: "show a volume made from a snapshot", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{b.volume(t, object{"snapshot_id": b.snapshot(t, b.volume(t, nil))})}})
		}},
		missing("show an unknown volume", Member, func(*testing.T, *Bed) string { return nothing }),
		missing("show a volume by an id that is no UUID", Member, func(*testing.T, *Bed) string { return "x" }),
		missing("show a volume of another project", Stranger, func(t *testing.T, b *Bed) string { return b.volume(t, nil) }),
		missing("show a volume that was deleted", Member, func(t *testing.T, b *Bed) string {
			id := b.volume(t, nil)
			b.remove(t, id)
			return id
		}),
		{
			Name: "show a volume under another project's address", Call: getVolume, Status: http.StatusBadRequest, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				return b.do(t, Request{Call: getVolume, As: Member, Of: Stranger, IDs: []string{nothing}})
			},
		},
		{Name: "a failed create ends in error", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{b.broken(t)}})
		}},
		{Name: "a failed create as admin sees it", Call: getVolume, Status: http.StatusOK, As: Admin, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Admin, IDs: []string{b.broken(t)}})
		}},
		{Name: "a volume that is being made as admin sees it", Call: getVolume, Status: http.StatusOK, As: Admin, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Admin, IDs: []string{b.creating(t)}})
		}},
		{Name: "a failed create leaves a message", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.broken(t)
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + id})
		}},
		{Name: "a failed create leaves a message for the reader", Call: listMessages, Status: http.StatusOK, As: Reader, Run: func(t *testing.T, b *Bed) Answer {
			id := b.broken(t)
			return b.do(t, Request{Call: listMessages, As: Reader, Query: "resource_uuid=" + id})
		}},
		{Name: "messages about nothing", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + nothing})
		}},
		{Name: "messages after an unknown marker", Call: listMessages, Status: http.StatusNotFound, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: listMessages, As: Member, Query: "marker=" + nothing})
		}},
		{Name: "messages with a limit that is no number", Call: listMessages, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: listMessages, As: Member, Query: "limit=many"})
		}},
		{Name: "messages before they existed", Call: at(listMessages, beforeMessages), Status: http.StatusNotFound, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: at(listMessages, beforeMessages), As: Member})
		}},
	}
}

func deleteCases() []Case {
	deletes := func(name string, status int, as Role, id func(t *testing.T, b *Bed) string, after string) Case {
		return Case{Name: name, Call: deleteVolume, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			volume := id(t, b)
			a := b.do(t, Request{Call: deleteVolume, As: as, IDs: []string{volume}})
			if b.done(t, a, status) && after != "" {
				b.awaitVolume(t, volume, after)
			}
			return a
		}}
	}
	return []Case{
		deletes("delete a volume", http.StatusAccepted, Member, func(t *testing.T, b *Bed) string { return b.volume(t, nil) }, "gone"),
		deletes("delete a volume as reader", http.StatusAccepted, Reader, func(t *testing.T, b *Bed) string { return b.volume(t, nil) }, "gone"),
		deletes("delete a volume in error", http.StatusAccepted, Member, func(t *testing.T, b *Bed) string { return b.broken(t) }, "gone"),
		deletes("delete an unknown volume", http.StatusNotFound, Member, func(*testing.T, *Bed) string { return nothing }, ""),
		deletes("delete a volume by an id that is no UUID", http.StatusNotFound, Member, func(*testing.T, *Bed) string { return "x" }, ""),
		deletes("delete a volume of another project", http.StatusNotFound, Stranger, func(t *testing.T, b *Bed) string { return b.volume(t, nil) }, "available"),
		deletes("delete a volume that was deleted", http.StatusNotFound, Member, func(t *testing.T, b *Bed) string {
			id := b.volume(t, nil)
			b.remove(t, id)
			return id
		}, ""),
		deletes("delete a volume that has a snapshot", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) string {
			id := b.volume(t, nil)
			b.snapshot(t, id)
			return id
		}, "available"),
		deletes("delete an attached volume", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) string {
			return b.attached(t, b.server(t, "node-az1"))
		}, "in-use"),
		{
			Name: "a failed delete ends in error_deleting", Call: deleteVolume, Status: http.StatusAccepted, As: Member,
			Run: func(t *testing.T, b *Bed) Answer {
				id := b.volume(t, nil)
				repair := b.fail(t, deleteOperation)
				defer repair()
				a := b.do(t, Request{Call: deleteVolume, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
				b.awaitVolume(t, id, "error_deleting")
				return a
			},
		},
	}
}

// midwayCases are about volumes between two stable statuses.
func midwayCases() []Case {
	about := func(name string, call cloud.Call, status int, midway func(b *Bed, t *testing.T) string) Case {
		return Case{Name: name, Call: call, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			r := Request{Call: call, As: Member, IDs: []string{midway(b, t)}}
			switch call {
			case attach:
				r.Body = attachBody(r.IDs[0])
				r.IDs = []string{b.server(t, "node-az1")}
			case detach:
				r.IDs = []string{b.server(t, "node-az1"), r.IDs[0]}
			}
			return b.do(t, r)
		}}
	}
	return []Case{
		about("show a volume that is being made", getVolume, http.StatusOK, (*Bed).creating),
		about("show a volume that is being deleted", getVolume, http.StatusOK, (*Bed).deleting),
		about("show a volume that is being detached", getVolume, http.StatusOK, (*Bed).detaching),
		about("delete a volume that is being made", deleteVolume, http.StatusBadRequest, (*Bed).creating),
		about("delete a volume that is being deleted", deleteVolume, http.StatusBadRequest, (*Bed).deleting),
		about("delete a volume that is being detached", deleteVolume, http.StatusBadRequest, (*Bed).detaching),
		about("attach a volume that is being made", attach, http.StatusBadRequest, (*Bed).creating),
		about("attach a volume that is being deleted", attach, http.StatusBadRequest, (*Bed).deleting),
		about("attach a volume that is being detached", attach, http.StatusBadRequest, (*Bed).detaching),
		about("detach a volume that is being detached", detach, http.StatusBadRequest, (*Bed).detaching),
	}
}

// creating is a volume whose creation is slow.
func (b *Bed) creating(t *testing.T) string {
	t.Helper()
	b.slow(t, createOperation)
	id := b.create(t, Request{Call: createVolume, As: Member, Body: b.volumeBody(nil)}).want(t, http.StatusAccepted).Text("volume", "id")
	b.until(t, "the volume has a host", func() (bool, string) { // without a host, Cinder deletes it at once
		a := b.do(t, Request{Call: getVolume, As: Admin, IDs: []string{id}}).want(t, http.StatusOK)
		return a.Text("volume", "os-vol-host-attr:host") != "", a.String()
	})
	return id
}

// deleting is a volume whose deletion is slow.
func (b *Bed) deleting(t *testing.T) string {
	t.Helper()
	id := b.volume(t, nil)
	b.slow(t, deleteOperation)
	b.do(t, Request{Call: deleteVolume, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
	return id
}

// detaching is a volume whose detach from node-az1 is slow.
func (b *Bed) detaching(t *testing.T) string {
	t.Helper()
	server := b.server(t, "node-az1")
	id := b.attached(t, server)
	b.slow(t, detachOperation)
	b.do(t, Request{Call: detach, As: Member, IDs: []string{server, id}}).want(t, http.StatusAccepted)
	return id
}

// broken is a volume whose creation failed in the backend.
func (b *Bed) broken(t *testing.T) string {
	t.Helper()
	repair := b.fail(t, createOperation)
	defer repair()
	a := b.create(t, Request{Call: createVolume, As: Member, Body: b.volumeBody(nil)}).want(t, http.StatusAccepted)
	id := a.Text("volume", "id")
	b.awaitVolume(t, id, "error")
	return id
}

// long is a text of n letters.
func long(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'x'
	}
	return string(text)
}
