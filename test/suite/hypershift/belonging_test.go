//go:build hypershift

package hypershift

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	otherCluster  = "tenant-b-q2m8r"
	foreignServer = "tenant-b-node" // a server of the project that is no node of the hosted cluster
	secretName    = "payroll-of-tenant-b"
)

// belonging is what the driver can know about some objects of the project. It refuses every request for them with the cause, or serves them if
// there is none. The objects are made as the operator of the cloud would, not by the driver.
type belonging struct {
	name                               string
	cause                              cause.ID
	volume, attached, snapshot, backup string // IDs; an attempt skips what is empty
	at                                 string // the node that attached is at
	metadata                           map[string]string
}

var clusterMark = map[string]string{contract.MetadataCluster: infraID}

// belongings makes the objects of each row.
func (h *hosted) belongings(t *testing.T, foreign server) []belonging {
	t.Helper()
	o, mark := h.openstack, map[string]string{contract.MetadataCluster: otherCluster}
	mine := belonging{name: "mine", metadata: clusterMark, at: h.servers[0].Name, volume: o.volumeWith(t, "static-1", clusterMark), attached: o.volumeWith(t, "static-2", clusterMark)}
	theirs := belonging{name: "theirs", metadata: mark, cause: cause.VolumeOtherCluster, at: foreignServer, volume: o.volumeWith(t, secretName, mark), attached: o.volumeWith(t, secretName, mark)}
	unmarked := belonging{name: "unmarked", cause: cause.VolumeUnmarked, at: h.servers[0].Name, volume: o.volumeWith(t, secretName, nil), attached: o.volumeWith(t, secretName, nil)}
	excluded := belonging{name: "on-an-excluded-server", cause: cause.VolumeOtherCluster, at: foreignServer, attached: o.volumeWith(t, secretName, nil)}
	excluded.volume = excluded.attached
	for _, b := range []*belonging{&mine, &theirs, &unmarked, &excluded} {
		b.snapshot, b.backup = o.snapshotWith(t, "snapshots", b.volume, b.metadata), o.snapshotWith(t, "backups", b.volume, b.metadata)
	}
	inherits := belonging{name: "unmarked-of-a-marked-volume", cause: cause.VolumeOtherCluster}
	inherits.snapshot, inherits.backup = o.snapshotWith(t, "snapshots", theirs.volume, nil), o.snapshotWith(t, "backups", theirs.volume, nil)
	o.attach(t, mine.attached, h.servers[0].ID)
	o.attach(t, unmarked.attached, h.servers[0].ID)
	o.attach(t, theirs.attached, foreign.ID)
	o.attach(t, excluded.attached, foreign.ID)
	return []belonging{mine, theirs, unmarked, excluded, inherits}
}

// tag gives a server the tag of its hosted cluster, as HyperShift does.
func (o *openstack) tag(t *testing.T, id, cluster string) {
	t.Helper()
	url := o.compute.ServiceURL("servers", id, "tags")
	testenv.Value(o.compute.Put(t.Context(), url, map[string]any{"tags": []string{"openshiftClusterID=" + cluster}}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}))(t)
	t.Cleanup(func() {
		_, _ = o.compute.Put(background(), url, map[string]any{"tags": []string{}}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	})
}

// foreign is the server that is no node. A real cloud makes it for this test.
func (o *openstack) foreign(t *testing.T) server {
	t.Helper()
	var list struct {
		Servers []struct{ ID, Name, Status string }
	}
	find := func() (server, error) {
		o.get(t, o.compute, "servers/detail", &list)
		for _, s := range list.Servers {
			if s.Name == foreignServer && s.Status == "ACTIVE" {
				return server{ID: s.ID, Name: s.Name}, nil
			}
		}
		return server{}, fmt.Errorf("the servers are %v", list.Servers)
	}
	if s, err := find(); err == nil {
		o.tag(t, s.ID, otherCluster)
		return s
	}
	var node struct {
		Server struct {
			Image  struct{ ID string }
			Flavor struct {
				Name string `json:"original_name"`
			}
		}
	}
	var flavors struct{ Flavors []struct{ ID, Name string } }
	o.get(t, o.compute, "servers/"+o.servers(t)[0].ID, &node)
	o.get(t, o.compute, "flavors", &flavors)
	i := slices.IndexFunc(flavors.Flavors, func(f struct{ ID, Name string }) bool { return f.Name == node.Server.Flavor.Name })
	var made struct{ Server struct{ ID string } }
	o.post(t, o.compute, "servers", map[string]any{"server": map[string]any{
		"name": foreignServer, "imageRef": node.Server.Image.ID, "flavorRef": flavors.Flavors[i].ID, "networks": "none",
	}}, &made)
	t.Cleanup(func() {
		_, _ = o.compute.Delete(background(), o.compute.ServiceURL("servers", made.Server.ID), nil)
	})
	var s server
	eventually(t, 2*time.Minute, "the server of another cluster", func() (err error) { s, err = find(); return err })
	o.tag(t, s.ID, otherCluster)
	return s
}

// volumeWith makes a volume that the test deletes at its end.
func (o *openstack) volumeWith(t *testing.T, name string, metadata map[string]string) string {
	t.Helper()
	return o.create(t, "volumes", map[string]any{"volume": map[string]any{"name": name, "size": 1, "metadata": metadata, "availability_zone": o.servers(t)[0].Zone}})
}

// snapshotWith makes a snapshot or backup of a volume.
func (o *openstack) snapshotWith(t *testing.T, kind, of string, metadata map[string]string) string {
	t.Helper()
	body := map[string]any{"name": secretName, "volume_id": of, "metadata": metadata}
	return o.create(t, kind, map[string]any{strings.TrimSuffix(kind, "s"): body})
}

func (o *openstack) create(t *testing.T, kind string, body map[string]any) string {
	t.Helper()
	noun := strings.TrimSuffix(kind, "s")
	object := body[noun].(map[string]any)
	marks, _ := object["metadata"].(map[string]string)
	if marks == nil {
		delete(object, "metadata")
	}
	made := map[string]struct{ ID string }{}
	o.post(t, o.volume, kind, body, &made)
	id := made[noun].ID
	if marks[contract.MetadataCluster] != infraID {
		o.others = append(o.others, id)
	}
	t.Cleanup(func() { o.remove(t, kind, id) })
	o.awaitStatus(t, kind, id, "available")
	return id
}

func (o *openstack) awaitStatus(t *testing.T, kind, id, want string) {
	t.Helper()
	eventually(t, 3*time.Minute, kind+" "+id+" "+want, func() error {
		if status := o.object(t, kind, id)["status"]; status != want {
			return fmt.Errorf("it is %v", status)
		}
		return nil
	})
}

// object is everything that Cinder says about an object. Empty, it is gone.
func (o *openstack) object(t *testing.T, kind, id string) map[string]any {
	t.Helper()
	made := map[string]map[string]any{}
	_, err := o.volume.Get(background(), o.volume.ServiceURL(kind, id), &made, nil)
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Fatal(err)
	}
	return made[strings.TrimSuffix(kind, "s")]
}

// remove deletes an object if it is there. A volume may be in use.
func (o *openstack) remove(t *testing.T, kind, id string) {
	t.Helper()
	eventually(t, 2*time.Minute, kind+" "+id+" deleted", func() error {
		object := o.object(t, kind, id)
		if object == nil {
			return nil
		}
		for _, s := range attachedTo(object) {
			_, _ = o.compute.Delete(background(), o.compute.ServiceURL("servers", s, "os-volume_attachments", id), nil)
		}
		_, _ = o.volume.Delete(background(), o.volume.ServiceURL(kind, id), nil)
		return fmt.Errorf("it is %v", object["status"])
	})
}

func attachedTo(volume map[string]any) (servers []string) {
	list, _ := volume["attachments"].([]any)
	for _, a := range list {
		servers = append(servers, fmt.Sprint(a.(map[string]any)["server_id"]))
	}
	return servers
}

func (o *openstack) attach(t *testing.T, id, to string) {
	t.Helper()
	o.post(t, o.compute, "servers/"+to+"/os-volume_attachments", map[string]any{"volumeAttachment": map[string]any{"volumeId": id}}, nil)
	o.awaitStatus(t, "volumes", id, "in-use")
}

func (o *openstack) post(t *testing.T, client *gophercloud.ServiceClient, path string, body, into any) {
	t.Helper()
	options := &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK, http.StatusAccepted, http.StatusCreated}}
	testenv.Value(client.Post(t.Context(), client.ServiceURL(strings.Split(path, "/")...), body, into, options))(t)
}

// state is what Cinder and Nova say about everything of others: the objects, what was made of them, and the disks of the foreign server.
func (o *openstack) state(t *testing.T, all []belonging, foreign server) map[string]any {
	t.Helper()
	state := map[string]any{}
	for _, b := range all {
		for kind, ids := range map[string][]string{"volumes": {b.volume, b.attached}, "snapshots": {b.snapshot}, "backups": {b.backup}} {
			for _, id := range ids {
				if b.cause != "" && id != "" {
					state[kind+" "+id] = o.object(t, kind, id)
				}
			}
		}
		for _, kind := range []string{"snapshots", "backups"} {
			var list map[string][]map[string]any
			o.get(t, o.volume, kind+"/detail", &list)
			for _, made := range list[kind] {
				if of := fmt.Sprint(made["volume_id"]); b.cause != "" && b.volume != "" && (of == b.volume || of == b.attached) {
					state[kind+" of "+of] = append(asList(state[kind+" of "+of]), made["id"])
				}
			}
		}
	}
	var disks any
	o.get(t, o.compute, "servers/"+foreign.ID+"/os-volume_attachments", &disks)
	state["disks of "+foreign.Name] = disks
	return state
}

func asList(v any) []any { list, _ := v.([]any); return list }

// wantUntouched compares what there was before the attempts with what there is.
func (o *openstack) wantUntouched(t *testing.T, before map[string]any, all []belonging, foreign server) {
	t.Helper()
	if diff := cmp.Diff(before, o.state(t, all, foreign)); diff != "" {
		t.Errorf("objects of another cluster changed (-before +after):\n%s", diff)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range append(o.others, foreign.ID) {
		for _, request := range o.wrote {
			if strings.Contains(strings.ToLower(request), id) {
				t.Errorf("the driver sent %.300s", request)
			}
		}
	}
	t.Logf("measured: the driver sent %d requests that change something; others have %d objects and a server", len(o.wrote), len(o.others))
}
