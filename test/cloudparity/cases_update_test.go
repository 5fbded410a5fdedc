package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	updateSnapshot = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/snapshots/{id}"}
	updateBackup   = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/backups/{id}", Microversion: "3.9"}
)

// original is the description that a snapshot or backup is made with.
const (
	original = "made by the parity suite"
	toldOf   = "told of" // is what it becomes
)

// snapshotUpdateCases are about another description for a snapshot.
func snapshotUpdateCases() []Case {
	describe := func(name string, as Role, status int, id func(t *testing.T, b *Bed) string, body object) Case {
		return Case{Name: name, Call: updateSnapshot, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: updateSnapshot, As: as, IDs: []string{id(t, b)}, Body: body})
		}}
	}
	good := object{"snapshot": object{"description": toldOf}}
	// described becomes so at the beginning, and is shown at the end.
	described := func(name, end string, prepare func(t *testing.T, b *Bed)) Case {
		return Case{Name: name, Call: getSnapshot, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			body := b.snapshotBody(b.volume(t, nil), object{"description": original, "metadata": object{"a": "1"}})
			prepare(t, b)
			id := b.do(t, Request{Call: createSnapshot, As: Member, Body: body}).want(t, http.StatusAccepted).Text("snapshot", "id")
			b.do(t, Request{Call: updateSnapshot, As: Member, IDs: []string{id}, Body: good}).want(t, http.StatusOK)
			b.awaitSnapshot(t, id, end)
			a := b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{id}})
			if got := a.Text("snapshot", "description"); got != toldOf {
				t.Errorf("the description is %q", got)
			}
			return a
		}}
	}
	plain := func(t *testing.T, b *Bed) string { return b.snapshot(t, b.volume(t, nil)) }
	return []Case{
		describe("describe a snapshot", Member, http.StatusOK, plain, good),
		describe("describe a snapshot as reader", Reader, http.StatusOK, plain, good),
		describe("describe a snapshot with an application credential", AppCred, http.StatusOK, plain, good),
		describe("describe a snapshot that failed", Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.brokenSnapshot(t) }, good),
		describe("describe a snapshot with too much", Member, http.StatusBadRequest, plain, object{"snapshot": object{"description": long(256)}}),
		describe("describe a snapshot with nothing", Member, http.StatusBadRequest, plain, object{}),
		describe("describe an unknown snapshot", Member, http.StatusNotFound, func(*testing.T, *Bed) string { return nothing }, good),
		describe("describe a snapshot by an id that is no UUID", Member, http.StatusNotFound, func(*testing.T, *Bed) string { return "x" }, good),
		describe("describe a snapshot of another project", Stranger, http.StatusNotFound, plain, good),
		described("a snapshot keeps the description that it was given while it was made", "available", func(t *testing.T, b *Bed) { b.slow(t, createSnapshotOperation) }),
		described("a snapshot that failed keeps the description that it was given before", "error", func(t *testing.T, b *Bed) { b.fail(t, createSnapshotOperation) }),
	}
}

// backupUpdateCases are about another description for a backup, and why its metadata cannot serve for that.
func backupUpdateCases() []Case {
	update := func(name string, call cloud.Call, as Role, status int, id func(t *testing.T, b *Bed) string, body object) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, IDs: []string{id(t, b)}, Body: body})
		}}
	}
	begun := func(t *testing.T, b *Bed, volume string) string {
		body := b.backupBody(volume, object{"description": original, "metadata": object{"a": "1", "b": "1"}})
		id := b.do(t, Request{Call: createBackup, As: Member, Body: body}).want(t, http.StatusAccepted).Text("backup", "id")
		b.keepBackup(t, id)
		return id
	}
	// updated becomes so at the beginning, or after it was made, and is listed at the end.
	updated := func(name string, call cloud.Call, first, end string, prepare func(t *testing.T, b *Bed), body object, description string) Case {
		return Case{Name: name, Call: listBackups, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			volume := b.volume(t, nil)
			prepare(t, b)
			id := begun(t, b, volume)
			if first != "" {
				b.awaitBackup(t, id, first)
			}
			b.do(t, Request{Call: call, As: Member, IDs: []string{id}, Body: body}).want(t, http.StatusOK)
			b.awaitBackup(t, id, end)
			a := b.do(t, Request{Call: listBackups, As: Member, Query: "volume_id=" + volume})
			if got := a.Text("backups", 0, "description"); got != description {
				t.Errorf("the description is %q, want %q", got, description)
			}
			return a
		}}
	}
	shared := func(_ *testing.T, b *Bed) string { return b.lend("described", nil, false).backup }
	undisturbed := func(*testing.T, *Bed) {}
	slow := func(t *testing.T, b *Bed) { b.slow(t, attachOperation) }
	fails := func(t *testing.T, b *Bed) { b.fail(t, attachOperation) }
	good := object{"backup": object{"description": toldOf}}
	labels := object{"backup": object{"metadata": object{"b": "2", "c": "2"}}}
	relabel := at(updateBackup, "3.43")
	return []Case{
		update("describe a backup", updateBackup, Member, http.StatusOK, shared, good),
		update("describe a backup as reader", updateBackup, Reader, http.StatusOK, shared, good),
		update("describe a backup with an application credential", updateBackup, AppCred, http.StatusOK, shared, good),
		update("describe a backup that failed", updateBackup, Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.brokenBackup(t) }, good),
		update("describe a backup with too much", updateBackup, Member, http.StatusBadRequest, shared, object{"backup": object{"description": long(256)}}),
		update("describe a backup with nothing", updateBackup, Member, http.StatusBadRequest, shared, object{}),
		update("describe a backup below 3.9", at(updateBackup, "3.8"), Member, http.StatusNotFound, shared, good),
		update("describe an unknown backup", updateBackup, Member, http.StatusNotFound, func(*testing.T, *Bed) string { return nothing }, good),
		update("describe a backup by an id that is no UUID", updateBackup, Member, http.StatusNotFound, func(*testing.T, *Bed) string { return "x" }, good),
		update("describe a backup of another project", updateBackup, Stranger, http.StatusNotFound, shared, good),
		updated("a backup keeps the description that it was given while it was made", updateBackup, "", "available", slow, good, toldOf),
		updated("a backup that failed keeps the description that it was given before", updateBackup, "", "error", fails, good, toldOf),
		update("give a backup metadata below 3.43", at(relabel, "3.42"), Member, http.StatusBadRequest, shared, labels),
		updated("new metadata of a backup takes the place of the old", relabel, "available", "available", undisturbed, labels, original),
		updated("a backup loses the metadata that it was given while it was made", relabel, "", "available", slow, labels, original),
	}
}
