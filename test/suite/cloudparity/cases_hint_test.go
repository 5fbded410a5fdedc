package cloudparity

import (
	"maps"
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// hinted is the body of a create with scheduler hints.
func (b *Bed) hinted(hints any) object {
	body := b.volumeBody(nil)
	body["OS-SCH-HNT:scheduler_hints"] = hints
	return body
}

// hintCases are about scheduler hints. Cinder's default filters use no hints, so the cases only check the schema.
func hintCases() []Case {
	var all []Case
	add := func(name string, call cloud.Call, status int, hints func(t *testing.T, b *Bed) any) {
		all = append(all, Case{Name: name, Call: call, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			a := b.create(t, Request{Call: call, As: Member, Body: b.hinted(hints(t, b))}).want(t, status)
			if status == http.StatusAccepted {
				b.awaitVolume(t, a.Text("volume", "id"), "available")
			}
			return a
		}})
	}
	plain := func(hints any) func(*testing.T, *Bed) any { return func(*testing.T, *Bed) any { return hints } }

	add("create with every scheduler hint", createVolume, http.StatusAccepted, func(t *testing.T, b *Bed) any {
		return object{
			"same_host": []string{b.volume(t, nil)}, "different_host": []string{b.volume(t, nil), b.volume(t, nil)},
			"query": `["=","$backend_id","a"]`, "local_to_instance": b.server(t, "node-az1"),
		}
	})
	add("create at 3.47 with a scheduler hint", createVolumeFromBackup, http.StatusAccepted, func(t *testing.T, b *Bed) any {
		return object{"different_host": []string{b.volume(t, nil)}}
	})
	add("create with a hint of a volume that is not there", createVolume, http.StatusAccepted, plain(object{"same_host": []string{nothing}}))
	add("create with one volume as a hint", createVolume, http.StatusAccepted, plain(object{"same_host": nothing}))
	add("create with a hint Cinder does not know", createVolume, http.StatusAccepted, plain(object{"colour": "blue"}))
	add("create with no hints", createVolume, http.StatusAccepted, plain(nil))
	add("create with hints that are no object", createVolume, http.StatusBadRequest, plain("same_host"))
	add("create with a hint that is no UUID", createVolume, http.StatusBadRequest, plain(object{"same_host": []string{"data-1"}}))
	add("create with a hint that names a volume twice", createVolume, http.StatusBadRequest, plain(object{"different_host": []string{nothing, nothing}}))
	add("create with a query that is a list", createVolume, http.StatusBadRequest, plain(object{"query": []string{"=", "a", "b"}}))
	add("create local to what is no server", createVolume, http.StatusBadRequest, plain(object{"local_to_instance": "node-az1"}))
	return all
}

// twoToThree are the extra specs of a type whose volumes have 2 to 3 GiB.
var twoToThree = object{"extra_specs": object{"provisioning:min_vol_size": "2", "provisioning:max_vol_size": "3"}}

// sizeCases are about the sizes that a type and a project allow.
func sizeCases() []Case {
	var all []Case
	typed := func(name string, status int, fields object) {
		all = append(all, Case{Name: name, Call: createVolume, Status: status, As: Member, Run: func(t *testing.T, b *Bed) Answer {
			volume := object{"volume_type": b.volumeType(t, twoToThree)}
			maps.Copy(volume, fields)
			a := b.create(t, Request{Call: createVolume, As: Member, Body: b.volumeBody(volume)}).want(t, status)
			if status == http.StatusAccepted {
				b.awaitVolume(t, a.Text("volume", "id"), "available")
			}
			return a
		}})
	}
	typed("create smaller than the type allows", http.StatusBadRequest, object{"size": 1})
	typed("create larger than the type allows", http.StatusBadRequest, object{"size": 4})
	typed("create as large as the type allows", http.StatusAccepted, object{"size": 3})
	typed("create smaller than the type allows in an unknown zone", http.StatusBadRequest, object{"size": 1, "availability_zone": "nowhere"})
	all = append(all, Case{
		Name: "extend a volume beyond what its type allows", Call: extendVolume, Status: http.StatusBadRequest, As: Member,
		Run: func(t *testing.T, b *Bed) Answer {
			id := b.volume(t, object{"size": 2, "volume_type": b.volumeType(t, twoToThree)})
			return b.do(t, Request{Call: extendVolume, As: Member, IDs: []string{id}, Body: sized(4)})
		},
	}, Case{
		Name: "create larger than a volume of the project may be", Call: createVolume, Status: http.StatusRequestEntityTooLarge, As: Stranger,
		Run: func(t *testing.T, b *Bed) Answer {
			set := func(limit int) {
				b.do(t, Request{
					Call: updateQuota, As: Admin, IDs: []string{b.session(t, Stranger).project}, Body: object{"quota_set": object{"per_volume_gigabytes": limit}},
				}).want(t, http.StatusOK)
			}
			set(1)
			defer set(-1)
			return b.create(t, Request{Call: createVolume, As: Stranger, Body: b.volumeBody(object{"size": 2})})
		},
	})
	return all
}
