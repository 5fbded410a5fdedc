package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Cinder's own records of attachments: what the driver asks, and how a case makes one that Nova knows nothing of.
var (
	listRows  = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments", Microversion: "3.27"}
	getRow    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/attachments/{id}", Microversion: "3.27"}
	deleteRow = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/attachments/{id}", Microversion: "3.27"}
	createRow = cloud.Call{Service: "block-storage", Method: http.MethodPost, Path: "/attachments", Microversion: "3.27"}
)

// beforeRows is a microversion that has no records of attachments.
const beforeRows = "3.26"

// reserved makes a volume that Cinder has reserved for a server, which Nova was not told; the record goes before the volume does.
func (b *Bed) reserved(t *testing.T, server string) (volume, row string) {
	t.Helper()
	volume = b.volume(t, nil)
	body := object{"attachment": object{"volume_uuid": volume, "instance_uuid": server}}
	row = b.do(t, Request{Call: createRow, As: Member, Body: body}).want(t, http.StatusOK).Text("attachment", "id")
	t.Cleanup(func() {
		b.do(t, Request{Call: deleteRow, As: Member, IDs: []string{row}}).want(t, http.StatusOK, http.StatusNotFound)
		b.awaitVolume(t, volume, "available")
	})
	return volume, row
}

// rowCases are about Cinder's records of attachments.
func rowCases() []Case {
	about := func(name string, call cloud.Call, status int, as Role, make func(t *testing.T, b *Bed) (ids []string, query string)) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			ids, query := make(t, b)
			return b.do(t, Request{Call: call, As: as, IDs: ids, Query: query})
		}}
	}
	of := func(make func(t *testing.T, b *Bed) (volume, row string)) func(*testing.T, *Bed) ([]string, string) {
		return func(t *testing.T, b *Bed) ([]string, string) {
			id, _ := make(t, b)
			return nil, "volume_id=" + id
		}
	}
	the := func(make func(t *testing.T, b *Bed) (volume, row string)) func(*testing.T, *Bed) ([]string, string) {
		return func(t *testing.T, b *Bed) ([]string, string) {
			_, row := make(t, b)
			return []string{row}, ""
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
		about("records of a reserved volume", listRows, http.StatusOK, Member, of(reserved)),
		about("records of a reserved volume as reader", listRows, http.StatusOK, Reader, of(reserved)),
		about("records of a reserved volume as another project", listRows, http.StatusOK, Stranger, of(reserved)),
		about("records of an attached volume", listRows, http.StatusOK, Member, of(attached)),
		about("records of a free volume", listRows, http.StatusOK, Member, of(free)),
		about("records of an unknown volume", listRows, http.StatusOK, Member, none),
		about("records of a volume attached to two servers", listRows, http.StatusOK, Member, of(func(t *testing.T, b *Bed) (string, string) {
			_, id, _ := b.shared(t)
			return id, ""
		})),
		about("records after one that is not there", listRows, http.StatusNotFound, Member, func(*testing.T, *Bed) ([]string, string) { return nil, "marker=" + nothing }),
		about("records with a limit that is no number", listRows, http.StatusBadRequest, Member, func(*testing.T, *Bed) ([]string, string) { return nil, "limit=many" }),
		about("records before there were any", at(listRows, beforeRows), http.StatusNotFound, Member, none),

		about("show a reserved record", getRow, http.StatusOK, Member, the(reserved)),
		about("show the record of a server that does not exist", getRow, http.StatusOK, Member, the(ofNobody)),
		about("show an unknown record", getRow, http.StatusNotFound, Member, fixed(nothing)),
		about("show a record of another project", getRow, http.StatusOK, Stranger, the(reserved)), // Cinder looks at no project here
		about("show a record by an id that is no UUID", getRow, http.StatusNotFound, Member, fixed("x")),

		{Name: "delete a reserved record", Call: deleteRow, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id, row := reserved(t, b)
			a := b.do(t, Request{Call: deleteRow, As: Member, IDs: []string{row}}).want(t, http.StatusOK)
			if status := b.status(t, id); status != "available" {
				t.Errorf("the volume is %s", status)
			}
			return a
		}},
		about("delete a record of a server that does not exist", deleteRow, http.StatusOK, Member, the(ofNobody)),
		about("delete the record of an attached volume", deleteRow, http.StatusConflict, Member, the(attached)),
		// Before Cinder deletes a record that has reached a host, it asks Nova in the user's name, and Keystone gives it no token for
		// that where the user is an application credential.
		about("delete the record of an attached volume with an application credential", deleteRow, http.StatusInternalServerError, AppCred, the(attached)),
		about("delete a reserved record with an application credential", deleteRow, http.StatusOK, AppCred, the(reserved)),
		about("delete a record as reader", deleteRow, http.StatusOK, Reader, the(reserved)),
		about("delete a record of another project", deleteRow, http.StatusForbidden, Stranger, the(reserved)),
		about("delete an unknown record", deleteRow, http.StatusNotFound, Member, fixed(nothing)),
		about("delete a record by an id that is no UUID", deleteRow, http.StatusNotFound, Member, fixed("x")),
	}
}
