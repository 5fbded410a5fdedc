package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	addSnapshotMetadata = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/snapshots/{id}/metadata"}
	updateBackup        = cloud.Call{Service: "block-storage", Method: http.MethodPut, Path: "/backups/{id}", Microversion: "3.43"}
)

// labels is what the cases change: one key that is there, one that is not, none for what is left out.
var (
	labels  = object{"a": "1", "b": "1"}
	changes = object{"b": "2", "cinder.csi.openstack.org/answered": "true"}
)

// labelled is a snapshot with metadata.
func (b *Bed) labelled(t *testing.T) string {
	t.Helper()
	a := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(b.volume(t, nil), object{"metadata": labels})}).want(t, http.StatusAccepted)
	b.awaitSnapshot(t, a.Text("snapshot", "id"), "available")
	return a.Text("snapshot", "id")
}

// snapshotMetadataCases are about adding to a snapshot's metadata.
func snapshotMetadataCases() []Case {
	add := func(name string, as Role, status int, id func(t *testing.T, b *Bed) string, body object) Case {
		return Case{Name: name, Call: addSnapshotMetadata, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: addSnapshotMetadata, As: as, IDs: []string{id(t, b)}, Body: body})
		}}
	}
	labelled := func(t *testing.T, b *Bed) string { return b.labelled(t) }
	good := object{"metadata": changes}
	return []Case{
		add("add metadata to a snapshot", Member, http.StatusOK, labelled, good),
		add("add metadata to a snapshot as reader", Reader, http.StatusOK, labelled, good),
		add("add metadata to a snapshot with an application credential", AppCred, http.StatusOK, labelled, good),
		add("add metadata to a snapshot that is being made", Member, http.StatusOK, func(t *testing.T, b *Bed) string {
			volume := b.volume(t, nil)
			b.slow(t, createSnapshotOperation)
			id := b.do(t, Request{Call: createSnapshot, As: Member, Body: b.snapshotBody(volume, nil)}).want(t, http.StatusAccepted).Text("snapshot", "id")
			t.Cleanup(func() { b.awaitSnapshot(t, id, "available") })
			return id
		}, good),
		add("add metadata to a snapshot that failed", Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.brokenSnapshot(t) }, good),
		add("add no metadata to a snapshot", Member, http.StatusBadRequest, labelled, object{}),
		add("add metadata with a value too long to a snapshot", Member, http.StatusBadRequest, labelled, object{"metadata": object{"a": long(256)}}),
		add("add metadata to an unknown snapshot", Member, http.StatusNotFound, func(*testing.T, *Bed) string { return nothing }, good),
		add("add metadata to a snapshot by an id that is no UUID", Member, http.StatusNotFound, func(*testing.T, *Bed) string { return "x" }, good),
		add("add metadata to a snapshot of another project", Stranger, http.StatusNotFound, labelled, good),
		{Name: "show a snapshot that metadata was added to", Call: getSnapshot, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.labelled(t)
			b.do(t, Request{Call: addSnapshotMetadata, As: Member, IDs: []string{id}, Body: good}).want(t, http.StatusOK)
			return b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{id}})
		}},
	}
}

// backupMetadataCases are about replacing a backup's metadata.
func backupMetadataCases() []Case {
	update := func(name string, call cloud.Call, as Role, status int, id func(t *testing.T, b *Bed) string, body object) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, IDs: []string{id(t, b)}, Body: body})
		}}
	}
	begun := func(t *testing.T, b *Bed, volume string) string {
		id := b.do(t, Request{Call: createBackup, As: Member, Body: b.backupBody(volume, object{"metadata": labels})}).want(t, http.StatusAccepted).Text("backup", "id")
		b.keepBackup(t, id)
		return id
	}
	made := func(t *testing.T, b *Bed) string {
		id := begun(t, b, b.volume(t, nil))
		b.awaitBackup(t, id, "available")
		return id
	}
	shared := func(_ *testing.T, b *Bed) string { return b.lend("relabelled", nil, false).backup }
	good := object{"backup": object{"metadata": changes}}
	return []Case{
		update("replace a backup's metadata", updateBackup, Member, http.StatusOK, made, good),
		update("replace a backup's metadata as reader", updateBackup, Reader, http.StatusOK, shared, good),
		update("replace a backup's metadata with an application credential", updateBackup, AppCred, http.StatusOK, shared, good),
		update("replace the metadata of a backup that is being made", updateBackup, Member, http.StatusOK, func(t *testing.T, b *Bed) string {
			volume := b.volume(t, nil)
			b.slow(t, attachOperation)
			return begun(t, b, volume)
		}, good),
		update("replace the metadata of a backup that failed", updateBackup, Member, http.StatusOK, func(t *testing.T, b *Bed) string { return b.brokenBackup(t) }, good),
		update("replace a backup's metadata by a value too long", updateBackup, Member, http.StatusBadRequest, shared, object{"backup": object{"metadata": object{"a": long(256)}}}),
		update("update no backup", updateBackup, Member, http.StatusBadRequest, shared, object{}),
		update("replace a backup's metadata below 3.43", at(updateBackup, "3.42"), Member, http.StatusBadRequest, shared, good),
		update("replace the metadata of an unknown backup", updateBackup, Member, http.StatusNotFound, func(*testing.T, *Bed) string { return nothing }, good),
		update("replace a backup's metadata by an id that is no UUID", updateBackup, Member, http.StatusNotFound, func(*testing.T, *Bed) string { return "x" }, good),
		update("replace the metadata of another project's backup", updateBackup, Stranger, http.StatusNotFound, shared, good),
		{Name: "a backup has the metadata that replaced its own", Call: listBackups, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			volume := b.volume(t, nil)
			id := begun(t, b, volume)
			b.awaitBackup(t, id, "available")
			b.do(t, Request{Call: updateBackup, As: Member, IDs: []string{id}, Body: good}).want(t, http.StatusOK)
			return b.do(t, Request{Call: listBackups, As: Member, Query: "volume_id=" + volume})
		}},
		{Name: "a backup keeps the metadata that it was given while it was made", Call: listBackups, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			volume := b.volume(t, nil)
			b.slow(t, attachOperation)
			id := begun(t, b, volume)
			b.do(t, Request{Call: updateBackup, As: Member, IDs: []string{id}, Body: good}).want(t, http.StatusOK)
			b.awaitBackup(t, id, "available")
			return b.do(t, Request{Call: listBackups, As: Member, Query: "volume_id=" + volume})
		}},
	}
}
