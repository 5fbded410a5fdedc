package cloudparity

import (
	"net/http"
	"testing"
)

// A retype is a volume action as an extension is.
var retypeVolume = volumeAction

// retyped is the body of a retype.
func retyped(kind any, policy string) object {
	request := object{"new_type": kind}
	if policy != "" {
		request["migration_policy"] = policy
	}
	return object{"os-retype": request}
}

// samePool are the fields of a type whose volumes are in the same pool as those of the default type.
var samePool = object{"extra_specs": object{"volume_backend_name": "standard"}}

// retypeCases are about changing the type of a volume: every refusal, the effect of a 202, and when a 202 has no effect.
func retypeCases() []Case {
	var all []Case
	taken := func(name string, as Role, status, kind string, prepare func(t *testing.T, b *Bed) (id, newType string), policy string) {
		all = append(all, Case{Name: name, Call: retypeVolume, Status: http.StatusAccepted, As: as, Run: func(t *testing.T, b *Bed) Answer {
			id, newType := prepare(t, b)
			a := b.do(t, Request{Call: retypeVolume, As: as, IDs: []string{id}, Body: retyped(newType, policy)})
			if !b.done(t, a, http.StatusAccepted) {
				return a
			}
			b.awaitVolume(t, id, status)
			want := kind
			if want == "" {
				want = newType
			}
			if got := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}}).Text("volume", "volume_type"); got != want {
				t.Errorf("the volume is of type %s, want %s", got, want)
			}
			return a
		}})
	}
	refused := func(name string, status int, as Role, prepare func(t *testing.T, b *Bed) (id string, body any)) {
		all = append(all, Case{Name: name, Call: retypeVolume, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			id, body := prepare(t, b)
			return b.do(t, Request{Call: retypeVolume, As: as, IDs: []string{id}, Body: body})
		}})
	}
	plainTo := func(kind string) func(t *testing.T, b *Bed) (string, string) {
		return func(t *testing.T, b *Bed) (string, string) { return b.volume(t, nil), kind }
	}
	plain := func(body any) func(t *testing.T, b *Bed) (string, any) {
		return func(t *testing.T, b *Bed) (string, any) { return b.volume(t, nil), body }
	}
	for _, as := range []Role{Member, Reader, AppCred} {
		taken("retype a volume within its pool as "+string(as), as, "available", "", plainTo("multiattach"), "never")
	}
	taken("retype a volume to another pool without a policy changes nothing", Member, "available", "standard", plainTo("fast"), "")
	taken("retype a volume to another pool changes nothing", Member, "available", "standard", plainTo("fast"), "never")
	taken("retype a volume to another pool on demand", Member, "available", "fast", plainTo("fast"), "on-demand")
	taken("retype a volume with a snapshot to another pool on demand changes nothing", Member, "available", "standard", func(t *testing.T, b *Bed) (string, string) {
		id := b.volume(t, nil)
		b.snapshot(t, id)
		return id, "fast"
	}, "on-demand")
	taken("retype an attached volume within its pool", Member, "in-use", "", func(t *testing.T, b *Bed) (string, string) {
		kind := b.volumeType(t, samePool) // its deletion comes after that of its volume
		return b.attached(t, b.server(t, "node-az1")), kind
	}, "never")

	refused("retype a volume to the type it has", http.StatusBadRequest, Member, plain(retyped("standard", "never")))
	refused("retype a volume to an unknown type", http.StatusNotFound, Member, plain(retyped("nowhere", "never")))
	refused("retype a volume to an unknown type by id", http.StatusNotFound, Member, plain(retyped(nothing, "never")))
	refused("retype a volume to no type", http.StatusBadRequest, Member, plain(object{"os-retype": object{}}))
	refused("retype a volume to a type that is no text", http.StatusBadRequest, Member, plain(retyped(1, "never")))
	refused("retype a volume by an unknown policy", http.StatusBadRequest, Member, plain(retyped("fast", "always")))
	refused("retype a volume with an unknown wish", http.StatusBadRequest, Member, plain(object{"os-retype": object{"new_type": "fast", "host": "x"}}))
	refused("retype an unknown volume", http.StatusNotFound, Member, func(*testing.T, *Bed) (string, any) { return nothing, retyped("fast", "never") })
	refused("retype a volume of another project", http.StatusNotFound, Stranger, plain(retyped("fast", "never")))
	refused("retype a volume in error", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, any) { return b.broken(t), retyped("fast", "never") })
	refused("retype an attached volume to a multiattach type", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, any) {
		return b.attached(t, b.server(t, "node-az1")), retyped("multiattach", "never")
	})
	refused("retype a volume to a type of smaller ones", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, any) {
		kind := b.volumeType(t, object{"extra_specs": object{"provisioning:max_vol_size": "1"}})
		return b.volume(t, object{"size": 2}), retyped(kind, "never")
	})
	refused("retype a volume to a type of larger ones", http.StatusBadRequest, Member, func(t *testing.T, b *Bed) (string, any) {
		kind := b.volumeType(t, object{"extra_specs": object{"provisioning:min_vol_size": "2"}})
		return b.volume(t, nil), retyped(kind, "never")
	})
	refused("retype a volume beyond the quota of the type", http.StatusRequestEntityTooLarge, Member, func(t *testing.T, b *Bed) (string, any) {
		return b.volume(t, object{"size": 1001}), retyped("fast", "never")
	})
	return append(all, Case{Name: "a volume is retyping after a retype was taken", Call: getVolume, Status: http.StatusOK, As: Member, Run: func(t *testing.T, b *Bed) Answer {
		id := b.volume(t, nil)
		b.slowMove(t)
		b.do(t, Request{Call: retypeVolume, As: Member, IDs: []string{id}, Body: retyped("fast", "on-demand")}).want(t, http.StatusAccepted)
		a := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
		b.awaitVolume(t, id, "available")
		return a
	}})
}

// slowMove slows down the move of a volume to another pool until the case ends, so that the case can observe the move. A real cloud first
// creates a new volume; the simulation has one operation for the move.
func (b *Bed) slowMove(t *testing.T) {
	t.Helper()
	if b.Real {
		b.slow(t, createOperation)
	} else {
		b.slow(t, retypeOperation)
	}
}
