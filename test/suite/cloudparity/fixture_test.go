package cloudparity

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// nothing is an ID that no object in any cloud has.
const nothing = "00000000-0000-4000-8000-000000000000"

// object is a JSON object.
type object = map[string]any

// volumeBody is the body of a create: 1 GiB under a name of this run, unless fields say otherwise.
func (b *Bed) volumeBody(fields object) object {
	return b.body("volume", object{"size": 1}, fields)
}

// body is that of a create under a name of this run. A field that is nil is left out.
func (b *Bed) body(kind string, defaults, fields object) object {
	all := object{"name": b.name()}
	maps.Copy(all, defaults)
	maps.Copy(all, fields)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return object{kind: all}
}

// create requests a volume as a case does, and deletes it at the end of the case.
func (b *Bed) create(t *testing.T, r Request) Answer {
	t.Helper()
	a := b.do(t, r)
	if id := a.Text("volume", "id"); id != "" {
		t.Cleanup(func() { b.remove(t, id) })
	}
	return a
}

// volume creates a volume and waits for it.
func (b *Bed) volume(t *testing.T, fields object) string {
	t.Helper()
	a := b.create(t, Request{Call: createVolume, As: Member, Body: b.volumeBody(fields)}).want(t, http.StatusAccepted)
	id := a.Text("volume", "id")
	b.awaitVolume(t, id, "available")
	return id
}

// status is the status of a volume; "gone" means that Cinder no longer has it.
func (b *Bed) status(t *testing.T, id string) string {
	t.Helper()
	a := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
	if a.want(t, http.StatusOK, http.StatusNotFound).Status == http.StatusNotFound {
		return "gone"
	}
	return a.Text("volume", "status")
}

// onTheWay are the statuses that a volume may have before it has the status that a case waits for.
var onTheWay = map[string][]string{
	"available":       {"creating", "restoring-backup", "downloading", "extending", "retyping", "reserved", "attaching", "in-use", "detaching"},
	"in-use":          {"available", "extending", "retyping", "reserved", "attaching"},
	"error":           {"creating"},
	"error_extending": {"available", "extending"},
	"error_deleting":  {"available", "deleting"},
	"error_restoring": {"creating", "restoring-backup"},
	"reserved":        {"in-use", "detaching"},
	"gone":            {"available", "error", "error_extending", "error_restoring", "deleting"},
}

// awaitVolume waits until a volume has a status. It fails if the volume has a status that cannot lead there.
func (b *Bed) awaitVolume(t *testing.T, id, want string) {
	t.Helper()
	b.goOn()
	b.until(t, "volume "+id+" is "+want, func() (bool, string) {
		status := b.status(t, id)
		if status != want && !slices.Contains(onTheWay[want], status) {
			t.Fatalf("volume %s is %s on its way to %s; known are %v", id, status, want, onTheWay[want])
		}
		return status == want, status
	})
}

// remove deletes a volume in any state, with its attachments and snapshots.
func (b *Bed) remove(t *testing.T, id string) {
	t.Helper()
	b.goOn()
	b.until(t, "volume "+id+" is settled", func() (bool, string) {
		switch status := b.status(t, id); status {
		case "available", "in-use", "error", "error_extending", "error_restoring", "error_deleting", "gone":
			return true, status
		default:
			return false, status
		}
	})
	a := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}})
	if a.Status == http.StatusNotFound {
		return
	}
	if a.Text("volume", "status") == "error_deleting" { // only an administrator can reset this status
		b.do(t, Request{Call: volumeAction, As: Admin, IDs: []string{id}, Body: object{"os-reset_status": object{"status": "error"}}}).want(t, http.StatusAccepted)
	}
	attachments := len(a.List("volume", "attachments"))
	for i := range attachments {
		server := a.Text("volume", "attachments", i, "server_id")
		b.do(t, Request{Call: detach, As: Member, IDs: []string{server, id}}).want(t, http.StatusAccepted)
		b.awaitAttachments(t, id, attachments-i-1)
	}
	b.do(t, Request{Call: deleteVolume, As: Member, IDs: []string{id}, Query: "cascade=true"}).want(t, http.StatusAccepted, http.StatusNotFound)
	b.awaitVolume(t, id, "gone")
}

// awaitAttachments waits until Cinder shows a volume attached n times and in a stable status.
func (b *Bed) awaitAttachments(t *testing.T, id string, n int) {
	t.Helper()
	b.goOn()
	want := "in-use"
	if n == 0 {
		want = "available"
	}
	b.until(t, "volume "+id+" is "+want, func() (bool, string) {
		a := b.do(t, Request{Call: getVolume, As: Member, IDs: []string{id}}).want(t, http.StatusOK)
		return len(a.List("volume", "attachments")) == n && a.Text("volume", "status") == want, a.String()
	})
}

// snapshot creates a snapshot of a volume and waits for it. The cleanup of the volume deletes it.
func (b *Bed) snapshot(t *testing.T, volume string) string {
	t.Helper()
	a := b.do(t, Request{Call: createSnapshot, As: Member, Body: object{"snapshot": object{"volume_id": volume, "name": b.name()}}})
	id := a.want(t, http.StatusAccepted).Text("snapshot", "id")
	b.until(t, "snapshot "+id+" is available", func() (bool, string) {
		s := b.do(t, Request{Call: getSnapshot, As: Member, IDs: []string{id}}).want(t, http.StatusOK)
		return s.Text("snapshot", "status") == "available", s.Text("snapshot", "status")
	})
	return id
}

// volumeType creates a volume type until the case ends, and returns its name.
func (b *Bed) volumeType(t *testing.T, fields object) string {
	t.Helper()
	name := b.name()
	body := object{"name": name}
	maps.Copy(body, fields)
	a := b.do(t, Request{Call: createType, As: Admin, Body: object{"volume_type": body}}).want(t, http.StatusOK)
	t.Cleanup(func() {
		b.do(t, Request{Call: deleteType, As: Admin, IDs: []string{a.Text("volume_type", "id")}}).want(t, http.StatusAccepted)
	})
	return name
}

// oneZone are the extra specs of a type whose volumes may be in az2 only.
var oneZone = object{"extra_specs": object{"RESKEY:availability_zones": "az2"}}

// server is the ID of a server by its name.
func (b *Bed) server(t *testing.T, name string) string {
	t.Helper()
	return b.named(t, listServers, "servers", name)
}

// named is the ID of the object of a name in a list.
func (b *Bed) named(t *testing.T, call cloud.Call, list, name string) string {
	t.Helper()
	a := b.do(t, Request{Call: call, As: Member}).want(t, http.StatusOK)
	for i := range a.List(list) {
		if a.Text(list, i, "name") == name {
			return a.Text(list, i, "id")
		}
	}
	t.Fatalf("the bed has no %s in its %s: %s", name, list, a)
	return ""
}

// idle is the ID of a server by its name. The server must have no volume.
func (b *Bed) idle(t *testing.T, name string) string {
	t.Helper()
	id := b.server(t, name)
	// Nova's list may show the volume of an earlier case for seconds after Cinder has detached it.
	b.until(t, "server "+name+" of the bed has no volumes, so that its answers can be compared", func() (bool, string) {
		a := b.do(t, Request{Call: listAttachments, As: Member, IDs: []string{id}}).want(t, http.StatusOK)
		return len(a.List("volumeAttachments")) == 0, a.String()
	})
	return id
}

// attachBody is the body of an attach.
func attachBody(volume string) object {
	return object{"volumeAttachment": object{"volumeId": volume}}
}

// attached creates a volume and attaches it to a server.
func (b *Bed) attached(t *testing.T, server string) string {
	t.Helper()
	id := b.volume(t, nil)
	b.do(t, Request{Call: attach, As: Member, IDs: []string{server}, Body: attachBody(id)}).want(t, http.StatusOK)
	b.awaitVolume(t, id, "in-use")
	return id
}

// fence gives the role Fenced an application credential of the member until the test ends. The credential may only list flavors.
func (b *Bed) fence(t *testing.T) {
	t.Helper()
	member := b.session(t, Member)
	a := b.do(t, Request{Call: createAppCred, As: Member, IDs: []string{member.user}, Body: object{"application_credential": object{
		"name":         b.name(),
		"access_rules": []object{{"service": "compute", "method": http.MethodGet, "path": "/v2.1/flavors"}},
	}}}).want(t, http.StatusCreated)
	entry := b.clouds[b.prefix+string(Member)]
	entry.AuthType = "v3applicationcredential"
	entry.Auth.AppCredID, entry.Auth.AppCredSecret = a.Text("application_credential", "id"), a.Text("application_credential", "secret")
	b.clouds[b.prefix+string(Fenced)] = entry
	t.Cleanup(func() {
		b.forget(Fenced)
		b.do(t, Request{Call: deleteAppCred, As: Member, IDs: []string{member.user, entry.Auth.AppCredID}}).want(t, http.StatusNoContent)
	})
}

// leftovers are the names of the volumes of this run that still exist.
func (b *Bed) leftovers(t *testing.T) []string {
	t.Helper()
	var left []string
	a := b.do(t, Request{Call: listVolumes, As: Member}).want(t, http.StatusOK)
	for i := range a.List("volumes") {
		if name := a.Text("volumes", i, "name"); len(name) >= len(b.made) && name[:len(b.made)] == b.made {
			left = append(left, fmt.Sprintf("%s (%s)", name, a.Text("volumes", i, "status")))
		}
	}
	return left
}
