package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Calls about Cinder's own attachment records. The driver uses the first three. A case uses the last to create a record that Nova does not
// have.
var (
	listAttachmentRecords  = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments", Microversion: "3.27"}
	getAttachmentRecord    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments/{id}", Microversion: "3.27"}
	deleteAttachmentRecord = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/attachments/{id}", Microversion: "3.27"}
	createAttachmentRecord = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/attachments", Microversion: "3.27"}
)

// beforeAttachmentRecords is a microversion without attachment records.
const beforeAttachmentRecords = "3.26"

// reserved creates a volume that Cinder has reserved for a server without the knowledge of Nova. The cleanup deletes the record before
// the volume.
func (b *Bed) reserved(t *testing.T, server string) (volume, record string) {
	t.Helper()
	volume = b.volume(t, nil)
	body := object{"attachment": object{"volume_uuid": volume, "instance_uuid": server}}
	record = b.do(t, Request{Call: createAttachmentRecord, As: Member, Body: body}).want(t, http.StatusOK).Text("attachment", "id")
	t.Cleanup(func() {
		b.do(t, Request{Call: deleteAttachmentRecord, As: Member, IDs: []string{record}}).want(t, http.StatusOK, http.StatusNotFound)
		b.awaitVolume(t, volume, "available")
	})
	return volume, record
}

// attachmentRecordCases are about Cinder's attachment records.
func attachmentRecordCases() []Case {
	about := func(name string, call cloud.Call, status int, as Role, make func(t *testing.T, b *Bed) (ids []string, query string)) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			ids, query := make(t, b)
			return b.do(t, Request{Call: call, As: as, IDs: ids, Query: query})
		}}
	}
	of := func(make func(t *testing.T, b *Bed) (volume, record string)) func(*testing.T, *Bed) ([]string, string) {
		return func(t *testing.T, b *Bed) ([]string, string) {
			id, _ := make(t, b)
			return nil, "volume_id=" + id
		}
	}
	the := func(make func(t *testing.T, b *Bed) (volume, record string)) func(*testing.T, *Bed) ([]string, string) {
		return func(t *testing.T, b *Bed) ([]string, string) {
			_, record := make(t, b)
			return []string{record}, ""
		}
	}
	reserved := func(t *testing.T, b *Bed) (string, string) { return b.reserved(t, b.server(t, "node-az1")) }
	ofNobody := func(t *testing.T, b *Bed) (string, string) { return b.reserved(t, nothing) }
	attached := func(t *testing.T, b *Bed) (string, string) {
		id := b.attached(t, b.server(t, "node-az1"))
		return id, b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}}).Text("volume", "attachments", 0, "attachment_id")
	}
	free := func(t *testing.T, b *Bed) (string, string) { return b.volume(t, nil), "" }
	fixed := func(id string) func(*testing.T, *Bed) ([]string, string) {
		return func(*testing.T, *Bed) ([]string, string) { return []string{id}, "" }
	}
	none := func(*testing.T, *Bed) ([]string, string) { return nil, "volume_id=" + nothing }
	return []Case{
		about("records of a reserved volume", listAttachmentRecords, http.StatusOK, Member, of(reserved)),
		about("records of a reserved volume as reader", listAttachmentRecords, http.StatusOK, Reader, of(reserved)),
		about("records of a reserved volume as another project", listAttachmentRecords, http.StatusOK, Stranger, of(reserved)),
		about("records of an attached volume", listAttachmentRecords, http.StatusOK, Member, of(attached)),
		about("records of a free volume", listAttachmentRecords, http.StatusOK, Member, of(free)),
		about("records of an unknown volume", listAttachmentRecords, http.StatusOK, Member, none),
		about("records of a volume attached to two servers", listAttachmentRecords, http.StatusOK, Member, of(func(t *testing.T, b *Bed) (string, string) {
			_, id, _ := b.shared(t)
			return id, ""
		})),
		about("records after one that is not there", listAttachmentRecords, http.StatusNotFound, Member, func(*testing.T, *Bed) ([]string, string) { return nil, "marker=" + nothing }),
		about("records with a limit that is no number", listAttachmentRecords, http.StatusBadRequest, Member, func(*testing.T, *Bed) ([]string, string) { return nil, "limit=many" }),
		about("records before there were any", at(listAttachmentRecords, beforeAttachmentRecords), http.StatusNotFound, Member, none),

		// A live migration reserves the volume a second time for its server. If the migration fails, that may stay.
		{Name: "show a volume that a second reservation of its server keeps", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			server := b.server(t, "node-az1")
			id := b.attached(t, server)
			body := object{"attachment": object{"volume_uuid": id, "instance_uuid": server}}
			record := b.do(t, Request{Call: createAttachmentRecord, As: Member, Body: body}).want(t, http.StatusOK).Text("attachment", "id")
			t.Cleanup(func() {
				b.do(t, Request{Call: deleteAttachmentRecord, As: Member, IDs: []string{record}}).want(t, http.StatusOK, http.StatusNotFound)
				b.awaitVolume(t, id, "available")
			})
			b.do(t, Request{Call: detach, As: Member, IDs: []string{server, id}}).want(t, http.StatusAccepted)
			b.awaitVolume(t, id, "reserved")
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
		}},

		about("show a reserved record", getAttachmentRecord, http.StatusOK, Member, the(reserved)),
		about("show the record of a server that does not exist", getAttachmentRecord, http.StatusOK, Member, the(ofNobody)),
		about("show an unknown record", getAttachmentRecord, http.StatusNotFound, Member, fixed(nothing)),
		about("show a record of another project", getAttachmentRecord, http.StatusOK, Stranger, the(reserved)), // Cinder does not check the project here
		about("show a record by an id that is no UUID", getAttachmentRecord, http.StatusNotFound, Member, fixed("x")),

		{Name: "delete a reserved record", Call: deleteAttachmentRecord, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id, record := reserved(t, b)
			a := b.do(t, Request{Call: deleteAttachmentRecord, As: Member, IDs: []string{record}}).want(t, http.StatusOK)
			if status := b.status(t, id); status != "available" {
				t.Errorf("the volume is %s", status)
			}
			return a
		}},
		about("delete a record of a server that does not exist", deleteAttachmentRecord, http.StatusOK, Member, the(ofNobody)),
		about("delete the record of an attached volume", deleteAttachmentRecord, http.StatusConflict, Member, the(attached)),
		// Before Cinder deletes a record that has reached a host, it calls Nova in the name of the user. If the user is an application
		// credential, Keystone issues no token for that call.
		about("delete the record of an attached volume with an application credential", deleteAttachmentRecord, http.StatusInternalServerError, AppCred, the(attached)),
		about("delete a reserved record with an application credential", deleteAttachmentRecord, http.StatusOK, AppCred, the(reserved)),
		about("delete a record as reader", deleteAttachmentRecord, http.StatusOK, Reader, the(reserved)),
		about("delete a record of another project", deleteAttachmentRecord, http.StatusForbidden, Stranger, the(reserved)),
		about("delete an unknown record", deleteAttachmentRecord, http.StatusNotFound, Member, fixed(nothing)),
		about("delete a record by an id that is no UUID", deleteAttachmentRecord, http.StatusNotFound, Member, fixed("x")),
	}
}
