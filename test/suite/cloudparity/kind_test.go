package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// kindCases collects the cases about reading and deleting objects of one kind.
type kindCases struct {
	all          []Case
	get, removal cloud.Call
	create       func(t *testing.T, b *Bed) string // creates an object and returns its ID
	await        func(t *testing.T, b *Bed, id, status string)
}

// show adds a case that reads an object.
func (k *kindCases) show(name string, as Role, status int, id func(t *testing.T, b *Bed) string) {
	k.all = append(k.all, Case{Name: name, Call: k.get, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
		return b.do(t, Request{Call: k.get, As: as, IDs: []string{id(t, b)}})
	}})
}

// deletes adds a case that deletes an object. The case waits until the object has the status after, if that is not empty.
func (k *kindCases) deletes(name string, as Role, status int, id func(t *testing.T, b *Bed) string, after string) {
	k.all = append(k.all, Case{Name: name, Call: k.removal, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
		target := id(t, b)
		a := b.do(t, Request{Call: k.removal, As: as, IDs: []string{target}})
		if b.done(t, a, status) && after != "" {
			k.await(t, b, target, after)
		}
		return a
	}})
}

// deleted returns the ID of an object that was deleted.
func (k *kindCases) deleted(t *testing.T, b *Bed) string {
	id := k.create(t, b)
	b.do(t, Request{Call: k.removal, As: Member, IDs: []string{id}}).want(t, http.StatusAccepted)
	k.await(t, b, id, "gone")
	return id
}

func noObject(*testing.T, *Bed) string { return nothing }

func noUUID(*testing.T, *Bed) string { return "x" }
