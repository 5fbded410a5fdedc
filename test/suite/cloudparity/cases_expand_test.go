package cloudparity

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// An extension is the volume action that the driver uses; other actions only prepare cases.
var (
	extendVolume         = volumeAction
	extendAttachedVolume = at(volumeAction, "3.42")
)

// sized is the body of an extension.
func sized(size any) object { return object{"os-extend": object{"new_size": size}} }

// expandCases are about extending volumes.
func expandCases() []Case {
	var all []Case
	extended := func(name string, call cloud.Call, as Role, id func(t *testing.T, b *Bed) string, before string) {
		all = append(all, Case{Name: name, Call: call, Status: http.StatusAccepted, As: as, Run: func(t *testing.T, b *Bed) Answer {
			volume := id(t, b)
			a := b.do(t, Request{Call: call, As: as, IDs: []string{volume}, Body: sized(2)})
			if !b.done(t, a, http.StatusAccepted) {
				return a
			}
			b.awaitVolume(t, volume, before)
			if size := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{volume}}).At("volume", "size"); size != json.Number("2") {
				t.Errorf("the volume has %v GiB, want 2", size)
			}
			return a
		}})
	}
	refused := func(name string, call cloud.Call, status int, as Role, id func(t *testing.T, b *Bed) string, body any) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, IDs: []string{id(t, b)}, Body: body})
		}})
	}
	plain := func(t *testing.T, b *Bed) string { return b.volume(t, nil) }
	fast := func(t *testing.T, b *Bed) string { return b.volume(t, object{"volume_type": "fast"}) }
	attached := func(t *testing.T, b *Bed) string { return b.attached(t, b.server(t, "node-az1")) }
	none := func(*testing.T, *Bed) string { return nothing }

	extended("extend a volume", extendVolume, Member, plain, "available")
	extended("extend a volume as reader", extendVolume, Reader, plain, "available")
	extended("extend a volume with an application credential", extendVolume, AppCred, plain, "available")
	extended("extend a volume at 3.42", extendAttachedVolume, Member, plain, "available")
	extended("extend an attached volume at 3.42", extendAttachedVolume, Member, attached, "in-use")
	for suffix, call := range map[string]cloud.Call{"": extendVolume, " at 3.42": extendAttachedVolume} {
		refused("extend a volume to the size it has"+suffix, call, http.StatusBadRequest, Member, plain, sized(1))
		refused("extend an unknown volume"+suffix, call, http.StatusNotFound, Member, none, sized(2))
		refused("extend a volume in error"+suffix, call, http.StatusBadRequest, Member, func(t *testing.T, b *Bed) string { return b.broken(t) }, sized(2))
		refused("extend a volume beyond the quota of gigabytes"+suffix, call, http.StatusRequestEntityTooLarge, Member, plain, sized(100000))
	}
	refused("extend a volume beyond the quota of its type", extendVolume, http.StatusRequestEntityTooLarge, Member, fast, sized(2000))
	refused("extend an attached volume below 3.42", extendVolume, http.StatusBadRequest, Member, attached, sized(2))
	refused("extend a volume of another project", extendVolume, http.StatusNotFound, Stranger, plain, sized(2))
	refused("extend a volume by an id that is no UUID", extendVolume, http.StatusNotFound, Member, func(*testing.T, *Bed) string { return "x" }, sized(2))
	refused("extend a volume to no size", extendVolume, http.StatusBadRequest, Member, plain, object{"os-extend": object{}})
	refused("extend a volume to a size that is no number", extendVolume, http.StatusBadRequest, Member, plain, sized("big"))
	refused("extend a volume to size zero", extendVolume, http.StatusBadRequest, Member, plain, sized(0))
	refused("an action Cinder does not know", extendVolume, http.StatusBadRequest, Member, plain, object{"os-shrink": object{}})
	return append(all,
		Case{Name: "extend a volume that is being extended", Call: extendVolume, Status: http.StatusBadRequest, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, nil)
			b.slow(t, extendOperation)
			b.do(t, Request{Call: extendVolume, As: Member, IDs: []string{id}, Body: sized(2)}).want(t, http.StatusAccepted)
			return b.do(t, Request{Call: extendVolume, As: Member, IDs: []string{id}, Body: sized(3)})
		}},
		Case{Name: "a failed extend ends in error_extending", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: getVolume, As: Member, IDs: []string{b.unextended(t)}})
		}},
		Case{Name: "a failed extend leaves a message", Call: listMessages, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: listMessages, As: Member, Query: "resource_uuid=" + b.unextended(t)})
		}},
	)
}

// unextended is a volume whose extension failed in the backend.
func (b *Bed) unextended(t *testing.T) string {
	t.Helper()
	id := b.volume(t, nil)
	repair := b.fail(t, extendOperation)
	defer repair()
	b.do(t, Request{Call: extendVolume, As: Member, IDs: []string{id}, Body: sized(2)}).want(t, http.StatusAccepted)
	b.awaitVolume(t, id, "error_extending")
	return id
}
