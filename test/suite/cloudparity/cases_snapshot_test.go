package cloudparity

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	createSnapshotInUse = at(createSnapshot, "3.66")
	getSnapshotLater    = at(getSnapshot, "3.71")
	deleteSnapshot      = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/snapshots/{id}"}
	listSnapshots       = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/snapshots/detail"}
)

// snapshotBody is the body of a snapshot of a volume, under a name of this run unless fields say otherwise.
func (b *Bed) snapshotBody(volume any, fields object) object {
	return b.body("snapshot", object{"volume_id": volume}, fields)
}

// awaitSnapshot waits until a snapshot has a status; "gone" means that Cinder no longer has it.
func (b *Bed) awaitSnapshot(t *testing.T, id, want string) {
	t.Helper()
	b.goOn()
	b.until(t, "snapshot "+id+" is "+want, func() (bool, string) {
		a := b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusOK, http.StatusNotFound)
		status := "gone"
		if a.Status == http.StatusOK {
			status = a.Text("snapshot", "status")
		}
		return status == want, status
	})
}

// removeSnapshot deletes a snapshot that only an administrator can release. The deletion of its volume would not delete it.
func (b *Bed) removeSnapshot(t *testing.T, id string) {
	t.Helper()
	b.do(t, Request{Call: snapshotAction, As: Admin, IDs: []string{id}, Body: object{"os-reset_status": object{"status": "error"}}}).want(t, http.StatusAccepted)
	b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
	b.awaitSnapshot(t, id, "gone")
}

var snapshotAction = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/snapshots/{id}/action"}

// snapshotCases are about creating, deleting and listing snapshots.
func snapshotCases() []Case {
	return slices.Concat(snapshotCreateCases(), snapshotReadCases(), snapshotListCases())
}

func snapshotCreateCases() []Case {
	var all []Case
	made := func(name string, call cloud.Call, as Role, volume func(t *testing.T, b *Bed) string, f object) {
		all = append(all, Case{Name: name, Call: call, Status: http.StatusAccepted, As: as, Run: func(t *testing.T, b *Bed) Answer {
			a := b.do(t, Request{Call: call, As: as, Body: b.snapshotBody(volume(t, b), f)})
			if b.done(t, a, http.StatusAccepted) {
				b.awaitSnapshot(t, a.Text("snapshot", "id"), "available")
			}
			return a
		}})
	}
	refused := func(name string, call cloud.Call, status int, as Role, volume func(t *testing.T, b *Bed) string, f object) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, Body: b.snapshotBody(volume(t, b), f)})
		}})
	}
	plain := func(t *testing.T, b *Bed) string { return b.volume(t, nil) }
	attached := func(t *testing.T, b *Bed) string { return b.attached(t, b.server(t, "node-az1")) }
	broken := func(t *testing.T, b *Bed) string { return b.broken(t) }
	none := func(*testing.T, *Bed) string { return nothing }

	made("snapshot a volume", createSnapshot, Member, plain, nil)
	made("snapshot a volume with description and metadata", createSnapshot, Member, plain, object{
		"description": "made by the parity suite", "metadata": object{"cluster": "k1", "csi.storage.k8s.io/volumesnapshot/name": "s"},
	})
	made("snapshot a volume without a name", createSnapshot, Member, plain, object{"name": nil})
	made("snapshot a volume as reader", createSnapshot, Reader, plain, nil)
	made("snapshot a volume as admin", createSnapshot, Admin, plain, nil)
	made("snapshot a volume with an application credential", createSnapshot, AppCred, plain, nil)
	made("snapshot a volume by force", createSnapshot, Member, plain, object{"force": true})
	made("snapshot an attached volume by force", createSnapshot, Member, attached, object{"force": true})
	made("snapshot a volume at 3.66", createSnapshotInUse, Member, plain, nil)
	made("snapshot an attached volume at 3.66", createSnapshotInUse, Member, attached, nil)
	made("snapshot an attached volume at 3.66 by force", createSnapshotInUse, Member, attached, object{"force": true})

	for suffix, call := range map[string]cloud.Call{"": createSnapshot, " at 3.66": createSnapshotInUse} {
		refused("snapshot an unknown volume"+suffix, call, http.StatusNotFound, Member, none, nil)
		refused("snapshot a volume in error"+suffix, call, http.StatusBadRequest, Member, broken, nil)
		refused("snapshot no volume"+suffix, call, http.StatusBadRequest, Member, none, object{"volume_id": nil})
		all = append(all, Case{Name: "snapshot a volume that is being extended" + suffix, Call: call, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, nil)
			b.slow(t, extendOperation)
			b.do(t, Request{Call: extendVolume, As: Member, IDs: []string{id}, Body: sized(2)}).want(t, http.StatusAccepted)
			return b.do(t, Request{Call: call, As: Member, Body: b.snapshotBody(id, nil)})
		}})
		all = append(all, Case{Name: "snapshot beyond the quota" + suffix, Call: call, Status: http.StatusRequestEntityTooLarge, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, nil)
			b.limit(t, "snapshots", 0)
			return b.do(t, Request{Call: call, As: Member, Body: b.snapshotBody(id, nil)})
		}})
	}
	refused("snapshot an attached volume below 3.66", createSnapshot, http.StatusBadRequest, Member, attached, nil)
	refused("snapshot an attached volume expressly without force", createSnapshot, http.StatusBadRequest, Member, attached, object{"force": false})
	refused("snapshot a volume at 3.66 expressly without force", createSnapshotInUse, http.StatusBadRequest, Member, plain, object{"force": false})
	refused("snapshot a volume of another project", createSnapshot, http.StatusNotFound, Stranger, plain, nil)
	refused("snapshot a volume by an id that is no UUID", createSnapshot, http.StatusBadRequest, Member, none, object{"volume_id": "x"})
	refused("snapshot with a name too long", createSnapshot, http.StatusBadRequest, Member, plain, object{"name": long(256)})
	refused("snapshot with a metadata value too long", createSnapshot, http.StatusBadRequest, Member, plain, object{"metadata": object{"a": long(256)}})
	return append(all,
		Case{Name: "a failed snapshot ends in error", Call: getSnapshot, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{b.brokenSnapshot(t)}})
		}},
		Case{Name: "a failed snapshot leaves a message", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + b.brokenSnapshot(t)})
		}},
		Case{Name: "create from a snapshot that is being made", Call: createVolume, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, nil)
			b.slow(t, createSnapshotOperation)
			a := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(id, nil)}).want(t, http.StatusAccepted)
			refusal := b.create(t, Request{Call: createVolume, As: Member, Body: b.volumeBody(object{"snapshot_id": a.Text("snapshot", "id")})})
			b.awaitSnapshot(t, a.Text("snapshot", "id"), "available")
			return refusal
		}},
	)
}

// brokenSnapshot is a snapshot whose creation failed in the backend.
func (b *Bed) brokenSnapshot(t *testing.T) string {
	t.Helper()
	volume := b.volume(t, nil)
	repair := b.fail(t, createSnapshotOperation)
	defer repair()
	a := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(volume, nil)}).want(t, http.StatusAccepted)
	b.awaitSnapshot(t, a.Text("snapshot", "id"), "error")
	return a.Text("snapshot", "id")
}

func snapshotReadCases() []Case {
	plain := func(t *testing.T, b *Bed) string { return b.snapshot(t, b.volume(t, nil)) }
	k := kindCases{get: getSnapshot, removal: deleteSnapshot, create: plain, await: func(t *testing.T, b *Bed, id, status string) { b.awaitSnapshot(t, id, status) }}
	k.show("show a snapshot", Member, http.StatusOK, plain)
	k.show("show a snapshot as reader", Reader, http.StatusOK, plain)
	k.show("show a snapshot as admin", Admin, http.StatusOK, plain)
	k.show("show an unknown snapshot", Member, http.StatusNotFound, noObject)
	k.show("show a snapshot by an id that is no UUID", Member, http.StatusNotFound, noUUID)
	k.show("show a snapshot of another project", Stranger, http.StatusNotFound, plain)
	k.show("show a snapshot that was deleted", Member, http.StatusNotFound, k.deleted)
	k.deletes("delete a snapshot", Member, http.StatusAccepted, plain, "gone")
	k.deletes("delete a snapshot as reader", Reader, http.StatusAccepted, plain, "gone")
	k.deletes("delete a snapshot in error", Member, http.StatusAccepted, func(t *testing.T, b *Bed) string { return b.brokenSnapshot(t) }, "gone")
	k.deletes("delete a snapshot that has a volume made from it", Member, http.StatusAccepted, func(t *testing.T, b *Bed) string {
		id := plain(t, b)
		b.volume(t, object{"snapshot_id": id})
		return id
	}, "gone")
	k.deletes("delete an unknown snapshot", Member, http.StatusNotFound, noObject, "")
	k.deletes("delete a snapshot by an id that is no UUID", Member, http.StatusNotFound, noUUID, "")
	k.deletes("delete a snapshot of another project", Stranger, http.StatusNotFound, plain, "available")
	k.deletes("delete a snapshot that was deleted", Member, http.StatusNotFound, k.deleted, "")
	return append(k.all,
		Case{Name: "delete a snapshot that is being made", Call: deleteSnapshot, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			volume := b.volume(t, nil)
			b.slow(t, createSnapshotOperation)
			id := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(volume, nil)}).want(t, http.StatusAccepted).Text("snapshot", "id")
			a := b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}})
			b.awaitSnapshot(t, id, "available")
			return a
		}},
		Case{Name: "delete a snapshot that is being deleted", Call: deleteSnapshot, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := plain(t, b)
			b.slow(t, deleteSnapshotOperation)
			b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
			a := b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}})
			b.awaitSnapshot(t, id, "gone")
			return a
		}},
		Case{Name: "a failed delete of a snapshot ends in error_deleting", Call: getSnapshot, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := plain(t, b)
			repair := b.fail(t, deleteSnapshotOperation)
			b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
			b.awaitSnapshot(t, id, "error_deleting")
			repair()
			a := b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{id}})
			b.removeSnapshot(t, id)
			return a
		}},
		Case{Name: "a failed delete of a snapshot leaves a message", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := plain(t, b)
			repair := b.fail(t, deleteSnapshotOperation)
			b.do(t, Request{Call: deleteSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
			b.awaitSnapshot(t, id, "error_deleting")
			repair()
			a := b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + id})
			b.removeSnapshot(t, id)
			return a
		}},
	)
}

func snapshotListCases() []Case {
	list := func(name string, status int, as Role, query func(t *testing.T, b *Bed) string, snapshots int) Case {
		return Case{Name: name, Call: listSnapshots, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			a := b.do(t, Request{Call: listSnapshots, As: as, Query: query(t, b)}).want(t, status)
			if got := len(a.List("snapshots")); status == http.StatusOK && snapshots >= 0 && got != snapshots {
				t.Errorf("%d snapshots, want %d: %s", got, snapshots, a)
			}
			return a
		}}
	}
	fixed := func(query string) func(*testing.T, *Bed) string {
		return func(*testing.T, *Bed) string { return query }
	}
	named := func(t *testing.T, b *Bed) string {
		volume, name := b.volume(t, nil), b.name()
		for range 2 {
			a := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(volume, object{"name": name})}).want(t, http.StatusAccepted)
			b.awaitSnapshot(t, a.Text("snapshot", "id"), "available")
		}
		return "name=" + name
	}
	of := func(t *testing.T, b *Bed) string {
		volume := b.volume(t, nil)
		b.snapshot(t, volume)
		b.snapshot(t, volume)
		b.snapshot(t, b.volume(t, nil))
		return "volume_id=" + volume
	}
	return []Case{
		list("two snapshots of one name", http.StatusOK, Member, named, 2),
		list("snapshots by name as reader", http.StatusOK, Reader, named, 2),
		list("snapshots by name as admin", http.StatusOK, Admin, named, 2),
		list("snapshots of another project are not listed", http.StatusOK, Stranger, named, 0),
		list("snapshots by a name nothing has", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return "name=" + b.name() }, 0),
		list("snapshots by a name's beginning", http.StatusOK, Member, func(t *testing.T, b *Bed) string {
			b.snapshot(t, b.volume(t, nil))
			return "name=" + b.made[:len(b.made)-1]
		}, 0),
		list("snapshots of a volume", http.StatusOK, Member, of, 2),
		list("snapshots of an unknown volume", http.StatusOK, Member, fixed("volume_id="+nothing), 0),
		list("snapshots of a volume one at a time", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return of(t, b) + "&limit=1" }, 1),
		list("snapshots by name and status", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(t, b) + "&status=available" }, 2),
		list("snapshots by name and another status", http.StatusOK, Member, func(t *testing.T, b *Bed) string { return named(t, b) + "&status=error" }, 0),
		list("snapshots after an unknown marker", http.StatusNotFound, Member, fixed("marker="+nothing), -1),
		list("snapshots after a marker that is no UUID", http.StatusNotFound, Member, fixed("marker=x"), -1),
		list("snapshots with a limit that is no number", http.StatusBadRequest, Member, fixed("limit=many"), -1),
		list("snapshots with a negative limit", http.StatusBadRequest, Member, fixed("limit=-1"), -1),
		{Name: "snapshots of a volume page by page", Call: listSnapshots, Status: http.StatusOK, As: Member, Run: walkSnapshots},
	}
}

// walkSnapshots reads the snapshots of one volume in pages of two and checks their order: newest first. Snapshots of the same second come
// by descending ID.
func walkSnapshots(t *testing.T, b *Bed) Answer {
	volume := b.volume(t, nil)
	made := map[string]bool{}
	for range 5 {
		made[b.snapshot(t, volume)] = true
	}
	var order []string
	marker := ""
	for {
		a := b.do(t, Request{Call: listSnapshots, As: Member, Query: "limit=2&volume_id=" + volume + marker}).want(t, http.StatusOK)
		for i := range a.List("snapshots") {
			id := a.Text("snapshots", i, "id")
			if !made[id] {
				t.Errorf("snapshot %s came twice, or is none of this volume", id)
			}
			delete(made, id)
			order = append(order, a.Text("snapshots", i, "created_at")+" "+id)
			marker = "&marker=" + id
		}
		if len(a.List("snapshots_links")) == 0 {
			if len(made) > 0 || !slices.IsSortedFunc(order, func(x, y string) int { return strings.Compare(y, x) }) {
				t.Errorf("missing %v; order %v", made, order)
			}
			return a
		}
	}
}

// limit sets a quota of the member's project until the case ends.
func (b *Bed) limit(t *testing.T, resource string, limit int) {
	t.Helper()
	project := b.session(t, Member).project
	set := func(n any) {
		b.do(t, Request{Call: setQuota, As: Admin, IDs: []string{project}, Body: object{"quota_set": object{resource: n}}}).want(t, http.StatusOK)
	}
	before := b.do(t, Request{Call: quotaSet, As: Admin, IDs: []string{project}}).want(t, http.StatusOK).At("quota_set", resource)
	if before == nil {
		t.Fatalf("no quota %s", resource)
	}
	set(limit)
	t.Cleanup(func() { set(before) })
}

var setQuota = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/os-quota-sets/{project}"}
