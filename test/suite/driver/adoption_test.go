package driver_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// upstream does to a cloud what upstream's plugin does, as far as it leaves traces there: names, metadata, attachments.
type upstream struct {
	t            *testing.T
	blocks, nova *gophercloud.ServiceClient
}

func newUpstream(t *testing.T, sim *openstacksim.Sim) *upstream {
	t.Helper()
	conf := testenv.Value(cloudconf.Parse(sim.CloudConf(inprocess.URL)))(t)
	settings := testenv.Value(cloud.FromConf(conf, "", func(string) string { return "" }))(t)
	c := testenv.Value(cloud.Connect(t.Context(), settings, cloud.Options{Transport: memnet.Transport(sim.Handler())}))(t)
	u := &upstream{t: t}
	u.blocks = testenv.Value(c.Client("block-storage", ""))(t)
	u.nova = testenv.Value(c.Client("compute", ""))(t)
	return u
}

// call sends one request and gives the object in its answer, whose only key is not looked at.
func (u *upstream) call(client *gophercloud.ServiceClient, method, path string, body map[string]any) map[string]any {
	u.t.Helper()
	var answer map[string]any
	options := &gophercloud.RequestOpts{OkCodes: []int{200, 202, 204}}
	if body != nil {
		options.JSONBody = body
	}
	if method != http.MethodDelete && !strings.HasSuffix(path, "/action") {
		options.JSONResponse = &answer
	}
	if _, err := client.Request(u.t.Context(), method, client.Endpoint+path, options); err != nil {
		u.t.Fatal(err)
	}
	for _, object := range answer {
		if inner, ok := object.(map[string]any); ok {
			return inner
		}
	}
	return answer
}

// labels is the metadata that upstream's plugin writes, with those of Kubernetes' objects.
func labels(more ...string) map[string]any {
	all := map[string]any{"cinder.csi.openstack.org/cluster": "kubernetes"}
	for i := 0; i < len(more); i += 2 {
		all["csi.storage.k8s.io/"+more[i]] = more[i+1]
	}
	return all
}

const description = "Created by OpenStack Cinder CSI driver"

// volume makes one as upstream's CreateVolume does, which does not wait for it.
func (u *upstream) volume(name string, more map[string]any) string {
	u.t.Helper()
	wanted := map[string]any{
		"name": name, "size": 1, "description": description, "availability_zone": "az1",
		"metadata": labels("pvc/name", "data", "pvc/namespace", "default", "pv/name", name),
	}
	maps.Copy(wanted, more)
	return u.call(u.blocks, http.MethodPost, "volumes", map[string]any{"volume": wanted})["id"].(string)
}

// attach and detach are upstream's, without its waits.
func (u *upstream) attach(id, server string) {
	u.t.Helper()
	u.call(u.nova, http.MethodPost, "servers/"+server+"/os-volume_attachments", map[string]any{"volumeAttachment": map[string]any{"volumeId": id}})
}

func (u *upstream) detach(id, server string) {
	u.t.Helper()
	u.call(u.nova, http.MethodDelete, "servers/"+server+"/os-volume_attachments/"+id, nil)
}

func (u *upstream) snapshot(name, volume string) string {
	u.t.Helper()
	return u.call(u.blocks, http.MethodPost, "snapshots", map[string]any{"snapshot": map[string]any{
		"name": name, "volume_id": volume, "description": description, "force": false,
		"metadata": labels("volumesnapshot/name", "shot", "volumesnapshot/namespace", "default", "volumesnapshotcontent/name", "content"),
	}})["id"].(string)
}

func (u *upstream) backup(name, volume, snapshot string) string {
	u.t.Helper()
	client := *u.blocks
	client.Microversion = "3.51" // of which availability_zone and metadata are
	metadata := labels("volumesnapshot/name", "shot", "volumesnapshot/namespace", "default", "volumesnapshotcontent/name", "content")
	metadata["type"] = "backup"
	return u.call(&client, http.MethodPost, "backups", map[string]any{"backup": map[string]any{
		"name": name, "volume_id": volume, "snapshot_id": snapshot, "description": description, "force": false, "availability_zone": "az1", "metadata": metadata,
	}})["id"].(string)
}

// show reads an object as the cloud has it.
func (u *upstream) show(path string) map[string]any {
	u.t.Helper()
	return u.call(u.blocks, http.MethodGet, path, nil)
}

func TestVolumesOfUpstreamsPluginWorkUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, u := startWith(t, sim, "--strict"), newUpstream(t, sim)
		az1, az2 := servers()

		// Replaced in the middle of a create: the provisioner asks the new driver, and it waits for the volume that is being made.
		id := u.volume("pvc-1", nil)
		v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume()
		if v.GetVolumeId() != id || v.GetCapacityBytes() != 1<<30 || len(v.GetVolumeContext()) != 0 || u.show("volumes/" + id)["status"] != "available" {
			t.Errorf("want %s, finished, got %v", id, v)
		}
		if got := v.GetAccessibleTopology()[0].GetSegments(); !maps.Equal(got, map[string]string{contract.TopologyKey: "az1"}) {
			t.Errorf("topology %v would not match the PersistentVolume's affinity", got)
		}

		// Replaced in the middle of an attach, and with an attachment.
		u.attach(id, az1)
		for range 2 {
			got := must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
			device := u.show("volumes/" + id)["attachments"].([]any)[0].(map[string]any)["device"]
			if diff := cmp.Diff(map[string]string{"DevicePath": fmt.Sprint(device)}, got.GetPublishContext()); diff != "" {
				t.Error("what upstream's node half gets, -want +got\n", diff)
			}
		}
		if diff := cmp.Diff(map[string][]string{id: {az1}}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		grown := must[*csi.ControllerExpandVolumeResponse](t)(d.ControllerExpandVolume(asSidecar(t), &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: writer,
		}))
		if grown.GetCapacityBytes() != 2<<30 {
			t.Errorf("got %v", grown)
		}

		// Replaced in the middle of a detach.
		u.detach(id, az1)
		for range 2 {
			must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		}
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az2, VolumeCapability: writer}))
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az2}))
		before := u.show("volumes/" + id)["metadata"]
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		if diff := cmp.Diff(any(labels("pvc/name", "data", "pvc/namespace", "default", "pv/name", "pvc-1")), before); diff != "" {
			t.Error("its metadata was changed, -want +got\n", diff)
		}
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Upstream answered OK for a volume in error and left it. It is not ours to remove: somebody may have bound it.
func TestAFailedVolumeOfTheUpstreamDriverStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, u := startWith(t, sim), newUpstream(t, sim)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		id := u.volume("pvc-1", nil)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Aborted, "Delete it by hand")
		if all := listed(t, d); len(all) != 1 {
			t.Errorf("want %s alone, got %v", id, all)
		}
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) // which names it
	})
}

func TestSnapshotsAndBackupsOfUpstreamsPluginWorkUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, u := startWith(t, sim), newUpstream(t, sim)
		id := u.volume("pvc-1", nil)
		time.Sleep(time.Minute) // virtual
		shot := u.snapshot("snapshot-1", id)
		if p := ready(t, d, snapshotRequest("snapshot-1", id)); p.GetSnapshotId() != shot || p.GetSizeBytes() != 1<<30 {
			t.Errorf("want %s, got %v", shot, p)
		}
		temporary := u.snapshot("snapshot-2", id) // what the plugin's backups are made from
		time.Sleep(time.Minute)
		saved := u.backup("snapshot-2", id, temporary)
		time.Sleep(time.Minute)
		for handle, name := range map[string]string{shot: "snapshot", saved: "backup"} {
			if listed, ready := readiness(t, d, handle); !listed || !ready {
				t.Errorf("%s: listed %v, ready %v", name, listed, ready)
			}
			restored := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("from-"+name, fromSnapshot(handle)))).GetVolume()
			if restored.GetVolumeContext()[contract.ContextResizeRequired] != "true" {
				t.Errorf("%s: got %v", name, restored)
			}
			// The same volume once more, as if upstream had made it and the provisioner asked the new driver.
			again := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("from-"+name, fromSnapshot(handle)))).GetVolume()
			if diff := cmp.Diff(restored.GetVolumeContext(), again.GetVolumeContext()); diff != "" || again.GetVolumeId() != restored.GetVolumeId() {
				t.Errorf("%s: got %v after %v", name, again, restored)
			}
			must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: restored.GetVolumeId()}))
		}
		for _, handle := range []string{saved, temporary, shot} {
			for range 2 {
				must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: handle}))
			}
		}
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
	})
}

// What upstream's plugin finds when it takes its place again: objects by their names, with its metadata, in states it knows.
func TestObjectsOfThisDriverAreWhatUpstreamsPluginLooksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, u := startWith(t, sim), newUpstream(t, sim)
		az1, _ := servers()
		names := map[string]string{"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "default", "csi.storage.k8s.io/pv/name": "pvc-1"}
		made := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = names }))).GetVolume()
		id := made.GetVolumeId()
		v := u.show("volumes/" + id)
		metadata := v["metadata"].(map[string]any)
		if v["id"] != id || v["name"] != "pvc-1" || v["description"] != description || v["status"] != "available" || fmt.Sprint(v["size"]) != "1" || len(made.GetVolumeContext()) != 0 {
			t.Errorf("got %v, %v", v, made.GetVolumeContext())
		}
		wanted := maps.Clone(names)
		wanted["cinder.csi.openstack.org/cluster"] = "test"
		for key, value := range wanted {
			if metadata[key] != value {
				t.Errorf("metadata %s is %v, want %s", key, metadata[key], value)
			}
		}
		// The plugin finds a volume by its name alone and answers with it if the size is right: there must be one.
		if n := len(u.call(u.blocks, http.MethodGet, "volumes?name=pvc-1", nil)["volumes"].([]any)); n != 1 {
			t.Errorf("%d volumes of that name", n)
		}
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		attachments := u.show("volumes/" + id)["attachments"].([]any)
		if len(attachments) != 1 || attachments[0].(map[string]any)["server_id"] != az1 || u.show("volumes/" + id)["status"] != "in-use" {
			t.Errorf("attachments %v: the plugin would not detach", attachments)
		}
		p := must[*csi.CreateSnapshotResponse](t)(d.CreateSnapshot(asSidecar(t), &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: id, Parameters: map[string]string{
			"csi.storage.k8s.io/volumesnapshot/name": "shot", "csi.storage.k8s.io/volumesnapshot/namespace": "default", "csi.storage.k8s.io/volumesnapshotcontent/name": "content",
		}})).GetSnapshot()
		shot := u.show("snapshots/" + p.GetSnapshotId())
		if shot["name"] != "snapshot-1" || shot["volume_id"] != id || shot["description"] != description || shot["metadata"].(map[string]any)["csi.storage.k8s.io/volumesnapshot/name"] != "shot" {
			t.Errorf("got %v", shot)
		}
	})
}

// There and back: this driver, upstream's plugin, this driver, on the same objects.
func TestReplaceUpstreamAndReturnToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, u := startWith(t, sim), newUpstream(t, sim)
		az1, az2 := servers()
		id := must[*csi.CreateVolumeResponse](t)(one.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(one.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		shot := ready(t, one, snapshotRequest("snapshot-1", id)).GetSnapshotId()
		one.Stop()

		u.detach(id, az1)
		time.Sleep(time.Minute)
		u.call(u.blocks, http.MethodPost, "volumes/"+id+"/action", map[string]any{"os-extend": map[string]any{"new_size": 2}})
		time.Sleep(time.Minute)
		u.attach(id, az2)
		restored := u.volume("pvc-2", map[string]any{"snapshot_id": shot})
		time.Sleep(time.Minute)

		d := startWith(t, sim)
		if diff := cmp.Diff(map[string][]string{id: {az2}, restored: nil}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		got := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(shot)))).GetVolume()
		if got.GetVolumeId() != restored || got.GetVolumeContext()[contract.ContextResizeRequired] != "true" {
			t.Errorf("want %s, got %v", restored, got)
		}
		grown := must[*csi.ControllerExpandVolumeResponse](t)(d.ControllerExpandVolume(asSidecar(t), &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: writer}))
		if grown.GetCapacityBytes() != 2<<30 {
			t.Errorf("got %v", grown)
		}
		if again := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId(); again != shot {
			t.Errorf("want %s, got %s", shot, again)
		}
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1})) // detached by the plugin
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az2}))
		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: shot}))
		for _, v := range slices.Sorted(maps.Keys(listed(t, d))) {
			must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: v}))
		}
	})
}

// A PersistentVolume written by hand names a volume that no driver has made.
func TestAVolumeWithoutAnyMetadataIsAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, u := startWith(t, sim, "--strict"), newUpstream(t, sim)
		az1, _ := servers()
		id := u.volume("", map[string]any{"metadata": map[string]any{}, "description": nil})
		time.Sleep(time.Minute)
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
	})
}
