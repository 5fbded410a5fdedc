package cloudparity

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	getBackup      = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/backups/{id}", Microversion: "3.43"}
	deleteBackup   = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/backups/{id}"}
	restoreBackup  = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/backups/{id}/restore"}
	addMetadata    = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/volumes/{id}/metadata"}
	removeMetadata = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/volumes/{id}/metadata/{key}"}

	createBackup       = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/backups", Microversion: "3.43"}
	createBackupInZone = at(createBackup, "3.51")
	listBackups        = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/backups/detail", Microversion: "3.43"}

	volumeServices = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/os-services"}
	disableService = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/os-services/disable"}
	enableService  = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/os-services/enable"}
)

// beginBackup requests a backup of a volume. The end of the case deletes it.
func (b *Bed) beginBackup(t *testing.T, volume string, incremental bool) string {
	t.Helper()
	a := b.do(t, Request{Call: createBackup, As: Member, Body: object{"backup": object{"volume_id": volume, "name": b.name(), "incremental": incremental}}})
	id := a.want(t, http.StatusAccepted).Text("backup", "id")
	t.Cleanup(func() {
		b.awaitBackup(t, id, "available", "error", "gone")
		b.do(t, Request{Call: deleteBackup, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted, http.StatusNotFound)
		b.awaitBackup(t, id, "gone")
	})
	return id
}

// backup creates a backup of a volume and waits for it.
func (b *Bed) backup(t *testing.T, volume string) string {
	t.Helper()
	id := b.beginBackup(t, volume, false)
	b.awaitBackup(t, id, "available")
	return id
}

// lent is a backup that several cases read and none changes, because a real cloud reads the whole volume for each backup.
type lent struct{ backup, volume string }

// lend returns a shared backup. The first case that needs this kind creates it, and the end of the suite deletes it. Its volume is deleted
// at once, so that no other case sees it.
func (b *Bed) lend(kind string, volume object, incremental bool) lent {
	t := b.suite
	if l, made := b.lent[kind]; made {
		return l
	}
	l := lent{volume: b.volume(t, volume)}
	l.backup = b.backup(t, l.volume)
	if incremental {
		b.awaitBackup(t, b.beginBackup(t, l.volume, true), "available")
	}
	b.do(t, Request{Call: deleteVolume, As: Member, IDs: []string{l.volume}}).want(t, http.StatusAccepted)
	b.awaitVolume(t, l.volume, "gone")
	if b.lent == nil {
		b.lent = map[string]lent{}
	}
	b.lent[kind] = l
	return l
}

// plainBackup is a backup that no case may change.
func (b *Bed) plainBackup() string { return b.lend("plain", nil, false).backup }

// awaitBackup waits until a backup has one of the statuses; "gone" means that Cinder no longer has it.
func (b *Bed) awaitBackup(t *testing.T, id string, want ...string) {
	t.Helper()
	b.goOn()
	b.until(t, "backup "+id+" is as wanted", func() (bool, string) {
		a := b.do(t, Request{Call: getBackup, As: Member, IDs: []string{id}}).want(t, http.StatusOK, http.StatusNotFound)
		status := "gone"
		if a.Status == http.StatusOK {
			status = a.Text("backup", "status")
		}
		return slices.Contains(want, status), status
	})
}

// brokenBackup is a backup whose volume the backend could not read.
func (b *Bed) brokenBackup(t *testing.T) string {
	t.Helper()
	volume := b.volume(t, nil)
	repair := b.fail(t, attachOperation)
	defer repair()
	id := b.beginBackup(t, volume, false)
	b.awaitBackup(t, id, "error")
	return id
}

// withoutBackups disables the only cinder-backup of the cloud until the case ends.
func (b *Bed) withoutBackups(t *testing.T) {
	t.Helper()
	a := b.do(t, Request{Call: volumeServices, As: Admin, Query: "binary=cinder-backup"}).want(t, http.StatusOK)
	service := object{"binary": "cinder-backup", "host": a.Text("services", 0, "host")}
	b.do(t, Request{Call: disableService, As: Admin, Body: service}).want(t, http.StatusOK)
	t.Cleanup(func() { b.do(t, Request{Call: enableService, As: Admin, Body: service}).want(t, http.StatusOK) })
	a = b.do(t, Request{Call: volumeServices, As: Admin, Query: "binary=cinder-backup"}).want(t, http.StatusOK)
	if b.release == "sid" && a.Text("services", 0, "status") == "enabled" {
		t.Skip("Cinder 29 says that it disabled a service, and does not")
	}
}

// nowhere is a zone that no cloud has. A Cinder up to Zed ignores the zone of a backup.
const nowhere = "nowhere"

// backupCases are about creating, deleting and listing backups.
func backupCases() []Case {
	return slices.Concat(backupCreateCases(), backupListCases(), backupReadCases(), restoreCases(), restoreIntoCases(), metadataCases())
}

// backupBody is the body of a backup of a volume, under a name of this run unless fields say otherwise.
func (b *Bed) backupBody(volume any, fields object) object {
	return b.body("backup", object{"volume_id": volume}, fields)
}

// keepBackup deletes a backup at the end of the case.
func (b *Bed) keepBackup(t *testing.T, id string) {
	t.Helper()
	t.Cleanup(func() {
		b.awaitBackup(t, id, "available", "error", "gone")
		b.do(t, Request{Call: deleteBackup, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted, http.StatusNotFound)
		b.awaitBackup(t, id, "gone")
	})
}

func backupCreateCases() []Case {
	var all []Case
	type sources func(t *testing.T, b *Bed) (volume, snapshot string)
	body := func(t *testing.T, b *Bed, of sources, f object) object {
		volume, snapshot := of(t, b)
		fields := object{"snapshot_id": snapshot}
		for k, v := range f {
			fields[k] = v
		}
		if fields["snapshot_id"] == "" {
			fields["snapshot_id"] = nil
		}
		return b.backupBody(volume, fields)
	}
	made := func(name string, call cloud.Call, as Role, of sources, f object, after string) {
		all = append(all, Case{Name: name, Call: call, Status: http.StatusAccepted, As: as, Run: func(t *testing.T, b *Bed) Answer {
			if f["availability_zone"] == nowhere && b.Real && b.afterZed() {
				t.Skip("after Zed, nobody can delete such a backup")
			}
			a := b.do(t, Request{Call: call, As: as, Body: body(t, b, of, f)}).want(t, http.StatusAccepted)
			b.keepBackup(t, a.Text("backup", "id"))
			b.awaitBackup(t, a.Text("backup", "id"), after)
			return a
		}})
	}
	refused := func(name string, call cloud.Call, status int, as Role, of sources, f object) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, Body: body(t, b, of, f)})
		}})
	}
	plain := func(t *testing.T, b *Bed) (string, string) {
		volume := b.volume(t, nil)
		return volume, b.snapshot(t, volume)
	}
	bare := func(t *testing.T, b *Bed) (string, string) { return b.volume(t, nil), "" }
	attached := func(t *testing.T, b *Bed) (string, string) {
		volume := b.attached(t, b.server(t, "node-az1"))
		call, force := createSnapshotInUse, object(nil)
		if b.lacks(call) {
			call, force = createSnapshot, object{"force": true}
		}
		a := b.do(t, Request{Call: call, As: Member, Body: b.snapshotBody(volume, force)}).want(t, http.StatusAccepted)
		b.awaitSnapshot(t, a.Text("snapshot", "id"), "available")
		return volume, a.Text("snapshot", "id")
	}
	none := func(*testing.T, *Bed) (string, string) { return nothing, "" }
	based := func(t *testing.T, b *Bed) (string, string) {
		volume := b.volume(t, nil)
		b.backup(t, volume)
		return volume, b.snapshot(t, volume)
	}
	labels := object{"metadata": object{"cluster": "k1", "csi.storage.k8s.io/volumesnapshot/name": "s"}, "description": "made by the parity suite"}

	made("back up a snapshot", createBackup, Member, plain, nil, "available")
	made("back up a snapshot with description and metadata", createBackup, Member, plain, labels, "available")
	made("back up a snapshot as an increment", createBackup, Member, based, object{"incremental": true}, "available")
	made("back up a snapshot of an attached volume", createBackup, Member, attached, nil, "available")
	made("back up a snapshot with an application credential", createBackup, AppCred, plain, nil, "available")
	made("back up a snapshot in a zone", createBackupInZone, Member, plain, object{"availability_zone": "az1"}, "available")
	made("back up a snapshot in a zone that there is not", createBackupInZone, Member, plain, object{"availability_zone": nowhere}, "available")
	made("back up a volume of a zone without cinder-backup", createBackup, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.volume(t, object{"availability_zone": "az2"}), ""
	}, nil, "error")
	for suffix, call := range map[string]cloud.Call{"": createBackup, " at 3.51": createBackupInZone} {
		refused("back up an unknown volume"+suffix, call, http.StatusNotFound, Member, none, nil)
		refused("back up an unknown snapshot"+suffix, call, http.StatusNotFound, Member, bare, object{"snapshot_id": nothing})
		refused("back up no volume"+suffix, call, http.StatusBadRequest, Member, none, object{"volume_id": nil})
		refused("back up as an increment without a base"+suffix, call, http.StatusBadRequest, Member, plain, object{"incremental": true})
		all = append(all, Case{Name: "back up beyond the quota" + suffix, Call: call, Status: http.StatusRequestEntityTooLarge, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			wanted := body(t, b, plain, nil)
			b.limit(t, "backups", 0)
			return b.do(t, Request{Call: call, As: Member, Body: wanted})
		}})
	}
	refused("back up a volume by an id that is no UUID", createBackup, http.StatusBadRequest, Member, none, object{"volume_id": "x"})
	refused("back up a snapshot by an id that is no UUID", createBackup, http.StatusBadRequest, Member, bare, object{"snapshot_id": "x"})
	refused("back up a volume of another project", createBackup, http.StatusNotFound, Stranger, plain, nil)
	refused("back up with a name too long", createBackup, http.StatusBadRequest, Member, plain, object{"name": long(256)})
	refused("back up with a metadata value too long", createBackup, http.StatusBadRequest, Member, plain, object{"metadata": object{"a": long(256)}})
	refused("back up with a word for an increment", createBackup, http.StatusBadRequest, Member, plain, object{"incremental": "maybe"})
	refused("back up in a zone below 3.51", createBackup, http.StatusBadRequest, Member, plain, object{"availability_zone": "az1"})
	refused("back up with metadata below 3.43", at(createBackup, "3.42"), http.StatusBadRequest, Member, plain, labels)
	refused("back up an attached volume without force", createBackup, http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.attached(t, b.server(t, "node-az1")), ""
	}, nil)
	refused("back up a snapshot of another volume", createBackup, http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.volume(t, nil), b.snapshot(t, b.volume(t, nil))
	}, nil)
	return append(all,
		Case{Name: "back up beyond the quota of gigabytes", Call: createBackup, Status: http.StatusRequestEntityTooLarge, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			wanted := body(t, b, plain, nil)
			b.limit(t, "backup_gigabytes", 0)
			return b.do(t, Request{Call: createBackup, As: Member, Body: wanted})
		}},
		Case{Name: "back up a snapshot that is being backed up", Call: createBackup, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			wanted := body(t, b, plain, nil)
			b.slow(t, attachOperation)
			b.keepBackup(t, b.do(t, Request{Call: createBackup, As: Member, Body: wanted}).want(t, http.StatusAccepted).Text("backup", "id"))
			return b.do(t, Request{Call: createBackup, As: Member, Body: wanted})
		}},
		Case{Name: "back up as an increment of what failed", Call: createBackup, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			broken := b.brokenBackup(t)
			volume := b.do(t, Request{Call: getBackup, As: Member, IDs: []string{broken}}).want(t, http.StatusOK).Text("backup", "volume_id")
			return b.do(t, Request{Call: createBackup, As: Member, Body: b.backupBody(volume, object{"snapshot_id": b.snapshot(t, volume), "incremental": true})})
		}},
		forgotten("a backup that nobody could make leaves its volume without a status", getVolume, func(volume, _ string) string { return volume }),
		forgotten("a backup that nobody could make leaves its snapshot as it was", getSnapshot, func(_, snapshot string) string { return snapshot }),
	)
}

// forgotten reads the statuses of a volume and its snapshot after a backup in a zone without a cinder-backup that works.
func forgotten(name string, look cloud.Call, which func(volume, snapshot string) string) Case {
	return Case{Name: name, Call: look, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
		volume := b.volume(t, object{"availability_zone": "az2"})
		snapshot := b.snapshot(t, volume)
		t.Cleanup(func() {
			for call, id := range map[cloud.Call]string{volumeAction: volume, snapshotAction: snapshot} {
				b.do(t, Request{Call: call, As: Admin, IDs: []string{id}, Body: object{"os-reset_status": object{"status": "available"}}}).want(t, http.StatusAccepted)
			}
		})
		a := b.do(t, Request{Call: createBackup, As: Member, Body: b.backupBody(volume, object{"snapshot_id": snapshot})}).want(t, http.StatusAccepted)
		b.keepBackup(t, a.Text("backup", "id"))
		b.awaitBackup(t, a.Text("backup", "id"), "error")
		return b.do(t, Request{Call: look, As: Member, IDs: []string{which(volume, snapshot)}})
	}}
}

func backupListCases() []Case {
	list := func(name string, status int, as Role, query func(t *testing.T, b *Bed) string, backups int) Case {
		return Case{Name: name, Call: listBackups, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			a := b.do(t, Request{Call: listBackups, As: as, Query: query(t, b)}).want(t, status)
			if got := len(a.List("backups")); status == http.StatusOK && got != backups {
				t.Errorf("%d backups, want %d: %s", got, backups, a)
			}
			return a
		}}
	}
	fixed := func(query string) func(*testing.T, *Bed) string {
		return func(*testing.T, *Bed) string { return query }
	}
	named := func(t *testing.T, b *Bed) string {
		volume, name := b.volume(t, nil), b.name()
		a := b.do(t, Request{Call: createBackup, As: Member, Body: b.backupBody(volume, object{"name": name, "snapshot_id": b.snapshot(t, volume), "metadata": object{"k": "v"}})})
		b.keepBackup(t, a.want(t, http.StatusAccepted).Text("backup", "id"))
		b.awaitBackup(t, a.Text("backup", "id"), "available")
		return "name=" + name
	}
	of := func(_ *testing.T, b *Bed) string { return "volume_id=" + b.lend("base", nil, true).volume }
	full := func(_ *testing.T, b *Bed) string { return "limit=1&volume_id=" + b.lend("plain", nil, false).volume }
	return []Case{
		list("backups by name", http.StatusOK, Member, named, 1),
		list("backups by name as reader", http.StatusOK, Reader, named, 1),
		list("backups by a name nobody has", http.StatusOK, Member, fixed("name=parity-nobody"), 0),
		list("backups of a volume", http.StatusOK, Member, of, 2),
		list("backups of a volume, one a page", http.StatusOK, Member, full, 1),
		list("backups of a volume by its id in another project", http.StatusOK, Stranger, of, 0),
		list("backups by a filter nobody knows", http.StatusBadRequest, Member, fixed("colour=red"), -1),
		list("backups after a marker that is gone", http.StatusNotFound, Member, fixed("marker="+nothing), -1),
		list("backups with a limit that is no number", http.StatusBadRequest, Member, fixed("limit=many"), -1),
		list("backups with a negative limit", http.StatusBadRequest, Member, fixed("limit=-1"), -1),
	}
}

func backupReadCases() []Case {
	plain := func(t *testing.T, b *Bed) string { return b.backup(t, b.volume(t, nil)) }
	k := kindCases{get: getBackup, removal: deleteBackup, create: plain, await: func(t *testing.T, b *Bed, id, status string) { b.awaitBackup(t, id, status) }}
	base := func(_ *testing.T, b *Bed) string { return b.lend("base", nil, true).backup }
	some := func(_ *testing.T, b *Bed) string { return b.plainBackup() }
	incomplete := func(t *testing.T, b *Bed) string {
		volume := b.volume(t, nil)
		b.slow(t, attachOperation)
		return b.beginBackup(t, volume, false)
	}
	k.show("show a backup", Member, http.StatusOK, some)
	k.show("show a backup as reader", Reader, http.StatusOK, some)
	k.show("show a backup as admin", Admin, http.StatusOK, some)
	k.show("show a backup that an incremental one rests on", Member, http.StatusOK, base)
	k.show("show a backup that failed", Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.brokenBackup(t) })
	k.show("show an unknown backup", Member, http.StatusNotFound, noObject)
	k.show("show a backup by an id that is no UUID", Member, http.StatusNotFound, noUUID)
	k.show("show a backup by a snapshot's id", Member, http.StatusNotFound, func(t *testing.T, b *Bed) string { return b.snapshot(t, b.volume(t, nil)) })
	k.show("show a backup of another project", Stranger, http.StatusNotFound, some)
	k.show("show a backup that was deleted", Member, http.StatusNotFound, k.deleted)
	k.deletes("delete a backup", Member, http.StatusAccepted, plain, "gone")
	k.deletes("delete a backup that failed", Member, http.StatusAccepted, func(t *testing.T, b *Bed) string { return b.brokenBackup(t) }, "gone")
	k.deletes("delete a backup that is being made", Member, http.StatusBadRequest, incomplete, "available")
	k.deletes("delete a backup that an incremental one rests on", Member, http.StatusBadRequest, base, "available")
	k.deletes("delete an unknown backup", Member, http.StatusNotFound, noObject, "")
	k.deletes("delete a backup by an id that is no UUID", Member, http.StatusNotFound, noUUID, "")
	k.deletes("delete a backup of another project", Stranger, http.StatusNotFound, some, "available")
	k.deletes("delete a backup that was deleted", Member, http.StatusNotFound, k.deleted, "")
	k.deletes("delete a backup while no cinder-backup works", Member, http.StatusNotFound, func(t *testing.T, b *Bed) string {
		id := some(t, b)
		b.withoutBackups(t)
		return id
	}, "available")
	k.all = append(k.all, Case{Name: "show an incremental backup of a volume that did not change", Call: getBackup, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
		volume := b.volume(t, nil)
		b.backup(t, volume)
		id := b.beginBackup(t, volume, true)
		b.awaitBackup(t, id, "available")
		a := b.do(t, Request{Call: getBackup, As: Member, IDs: []string{id}})
		if n := a.At("backup", "object_count"); fmt.Sprint(n) != "0" { // the recording has the type of a number alone
			t.Errorf("it has %v objects", n)
		}
		return a
	}})
	k.all = append(k.all, Case{Name: "show a snapshot by a backup's id", Call: getSnapshot, Status: http.StatusNotFound, As: Member, Run: func(t *testing.T, b *Bed) Answer {
		return b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{b.plainBackup()}})
	}})
	return k.all
}

func restoreCases() []Case {
	var all []Case
	restore := func(name string, status int, as Role, backup func(t *testing.T, b *Bed) string, fields object) {
		all = append(all, Case{Name: name, Call: createVolumeFromBackup, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			body := b.volumeBody(fields)
			body["volume"].(object)["backup_id"] = backup(t, b)
			a := b.create(t, Request{Call: createVolumeFromBackup, As: as, Body: body}).want(t, status)
			if status == http.StatusAccepted {
				b.awaitVolume(t, a.Text("volume", "id"), "available")
			}
			return a
		}})
	}
	plain := func(_ *testing.T, b *Bed) string { return b.plainBackup() }
	restore("create from a backup", http.StatusAccepted, Member, plain, nil)
	restore("create from a backup elsewhere", http.StatusAccepted, Member, plain, object{"availability_zone": "az2", "size": 2, "volume_type": "fast", "metadata": object{"a": "1"}})
	restore("create from a backup smaller than it", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) string {
		return b.backup(t, b.volume(t, object{"size": 2}))
	}, nil)
	restore("create from a backup that is being made", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) string {
		volume := b.volume(t, nil)
		b.slow(t, attachOperation)
		return b.beginBackup(t, volume, false)
	}, nil)
	restore("create from a backup of another project", http.StatusNotFound, Stranger, plain, nil)

	source := object{"metadata": object{"of": "the source"}}
	own := func(t *testing.T, b *Bed) string { return b.backup(t, b.volume(t, source)) }
	shared := func(_ *testing.T, b *Bed) string { return b.lend("of a volume with metadata", source, false).backup }
	made := func(t *testing.T, b *Bed, backup func(t *testing.T, b *Bed) string, want string) (restored, id string) {
		id = backup(t, b)
		if want != "available" {
			defer b.fail(t, attachOperation)()
		}
		a := b.create(t, Request{Call: createVolumeFromBackup, As: Member, Body: b.volumeBody(object{"backup_id": id, "metadata": object{"of": "the wish", "mine": "1"}})})
		restored = a.want(t, http.StatusAccepted).Text("volume", "id")
		b.awaitVolume(t, restored, want)
		return restored, id
	}
	return append(all,
		Case{Name: "show a volume made from a backup", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id, _ := made(t, b, shared, "available")
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
		}},
		Case{Name: "a failed restore of a backup ends in error_restoring", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id, _ := made(t, b, shared, "error_restoring")
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
		}},
		Case{Name: "a failed restore of a backup leaves a message about the backup", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			_, id := made(t, b, own, "error_restoring")
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + id})
		}},
		Case{Name: "a failed restore of a backup leaves no message about the volume", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id, _ := made(t, b, shared, "error_restoring")
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + id})
		}},
	)
}

// restoreIntoCases are about a restore into a volume that exists.
func restoreIntoCases() []Case {
	var all []Case
	restore := func(name string, status int, as Role, objects func(t *testing.T, b *Bed) (backup, volume string)) {
		all = append(all, Case{Name: name, Call: restoreBackup, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			backup, volume := objects(t, b)
			a := b.do(t, Request{Call: restoreBackup, As: as, IDs: []string{backup}, Body: object{"restore": object{"volume_id": volume}}})
			if b.done(t, a, status) && status == http.StatusAccepted {
				b.awaitVolume(t, volume, "available")
				b.awaitBackup(t, backup, "available")
			}
			return a
		}})
	}
	empty := func(t *testing.T, b *Bed) (string, string) { return b.plainBackup(), b.volume(t, nil) }
	restore("restore a backup into a volume", http.StatusAccepted, Member, empty)
	restore("restore a backup into a larger volume of another type and zone", http.StatusAccepted, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.plainBackup(), b.volume(t, object{"availability_zone": "az2", "size": 2, "volume_type": "fast"})
	})
	restore("restore a backup into a volume as reader", http.StatusAccepted, Reader, empty)
	restore("restore a backup of another project", http.StatusNotFound, Stranger, empty)
	restore("restore a backup into a volume in use", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.plainBackup(), b.attached(t, b.server(t, "node-az1"))
	})
	restore("restore a backup into a smaller volume", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
		return b.backup(t, b.volume(t, object{"size": 2})), b.volume(t, nil)
	})
	restore("restore a backup that is being made", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, string) {
		source, volume := b.volume(t, nil), b.volume(t, nil)
		b.slow(t, attachOperation)
		return b.beginBackup(t, source, false), volume
	})
	restore("restore an unknown backup", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) { return nothing, b.volume(t, nil) })
	restore("restore a backup into an unknown volume", http.StatusNotFound, Member, func(_ *testing.T, b *Bed) (string, string) { return b.plainBackup(), nothing })
	restore("restore a backup into a volume by an id that is no UUID", http.StatusBadRequest, Member, func(_ *testing.T, b *Bed) (string, string) { return b.plainBackup(), "x" })
	restore("restore a backup while no cinder-backup works", http.StatusNotFound, Member, func(t *testing.T, b *Bed) (string, string) {
		backup, volume := b.plainBackup(), b.volume(t, nil)
		b.withoutBackups(t)
		return backup, volume
	})
	source := object{"metadata": object{"of": "the source"}}
	shown := func(name string, fields, original object, fails bool) {
		all = append(all, Case{Name: name, Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			backup, volume := b.backup(t, b.volume(t, original)), b.volume(t, fields)
			want := "available"
			if fails {
				want = "error_restoring"
				defer b.fail(t, attachOperation)()
			}
			b.do(t, Request{Call: restoreBackup, As: Member, IDs: []string{backup}, Body: object{"restore": object{"volume_id": volume}}}).want(t, http.StatusAccepted)
			b.awaitVolume(t, volume, want)
			b.awaitBackup(t, backup, "available")
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{volume}})
		}})
	}
	own := object{"description": "its own", "metadata": object{"of": "the wish", "mine": "1"}}
	shown("show a volume that a backup was restored into", own, source, false)
	shown("show a volume that a backup without metadata was restored into", own, nil, false)
	shown("a failed restore into a volume ends in error_restoring", own, source, true)
	return all
}

// metadataCases are about the metadata of a volume.
func metadataCases() []Case {
	add := func(name string, as Role, status int, id func(t *testing.T, b *Bed) string, body object) Case {
		return Case{Name: name, Call: addMetadata, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: addMetadata, As: as, IDs: []string{id(t, b)}, Body: body})
		}}
	}
	remove := func(name string, as Role, status int, id func(t *testing.T, b *Bed) string, key string) Case {
		return Case{Name: name, Call: removeMetadata, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: removeMetadata, As: as, IDs: []string{id(t, b), key}})
		}}
	}
	labelled := func(t *testing.T, b *Bed) string { return b.volume(t, object{"metadata": object{"a": "1", "b": "1"}}) }
	spaced := func(t *testing.T, b *Bed) string {
		return b.volume(t, object{"metadata": object{"a": "1", "c d.e:f": "1"}})
	}
	none := func(*testing.T, *Bed) string { return nothing }
	good := object{"metadata": object{"b": "2", "cinder.csi.openstack.org/cluster": "k1"}}
	return []Case{
		add("add metadata to a volume", Member, http.StatusOK, labelled, good),
		add("add metadata to a volume as reader", Reader, http.StatusOK, labelled, good),
		add("add metadata to an attached volume", Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.attached(t, b.server(t, "node-az1")) }, good),
		add("add no metadata to a volume", Member, http.StatusBadRequest, labelled, object{}),
		add("add metadata with a value too long", Member, http.StatusBadRequest, labelled, object{"metadata": object{"a": long(256)}}),
		add("add metadata to an unknown volume", Member, http.StatusNotFound, none, good),
		add("add metadata to a volume by an id that is no UUID", Member, http.StatusNotFound, func(*testing.T, *Bed) string { return "x" }, good),
		add("add metadata to a volume of another project", Stranger, http.StatusNotFound, labelled, good),
		remove("remove metadata of a volume", Member, http.StatusOK, labelled, "a"),
		remove("remove metadata of a volume by a key with a blank and a dot", Member, http.StatusOK, spaced, "c%20d.e:f"),
		remove("remove metadata of a volume as reader", Reader, http.StatusOK, labelled, "a"),
		remove("remove metadata that a volume lacks", Member, http.StatusNotFound, labelled, "z"),
		remove("remove metadata by a key that ends as a format", Member, http.StatusOK, labelled, "a.json"),
		remove("remove metadata by a key with a slash", Member, http.StatusNotFound, labelled, "a%2Fb"),
		remove("remove metadata of an unknown volume", Member, http.StatusNotFound, none, "a"),
		remove("remove metadata of a volume of another project", Stranger, http.StatusNotFound, labelled, "a"),
	}
}
