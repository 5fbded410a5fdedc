//go:build openstack

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// serverNamed is the ID of a server of the bed.
func serverNamed(t *testing.T, bed, name string) string {
	t.Helper()
	id, messages, code := run(t, []string{"OS_CLIENT_CONFIG_FILE=" + filepath.Join(bed, "clouds.yaml"), "PATH=/usr/bin:/bin"},
		"/usr/bin/openstack", "--os-cloud", "lab-demo", "server", "show", name, "-f", "value", "-c", "id")
	if code != 0 {
		t.Fatal(messages)
	}
	return strings.TrimSpace(id)
}

// secondZone is that of a server that may share a volume of the first zone. A cloud without cross_az_attach refuses servers of other zones.
func secondZone(t *testing.T, bed string) string {
	t.Helper()
	text := testfile.Read(t, filepath.Join(bed, "bed.json"))
	var settings struct {
		CrossZones *bool `json:"cross_az_attach"` // a bed of before has no such key
	}
	testenv.Must(t, json.Unmarshal(text, &settings))
	if settings.CrossZones != nil && !*settings.CrossZones {
		return zonesOfBed[0]
	}
	return zonesOfBed[1]
}

// twoServers are servers of the bed that may share a volume.
func twoServers(t *testing.T, bed string) (one, two string) {
	t.Helper()
	name := "node-az2"
	if secondZone(t, bed) == zonesOfBed[0] {
		name = "node-az1-2"
	}
	return serverNamed(t, bed, "node-az1"), serverNamed(t, bed, name)
}

// records calls Cinder's attachments API as the user of the driver's project.
type records struct{ admin }

// do makes a call at the first microversion that completes attachments.
func (r records) do(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	r.admin.microversion = "3.44"
	r.call(t, method, path, body, answer)
}

// of lists the records of a volume, as "status server". It reads all, because a cloud may have no filter for the volume.
func (r records) of(t *testing.T, volume string) []string {
	t.Helper()
	var answer struct {
		Attachments []struct {
			Status, Instance string
			Volume           string `json:"volume_id"`
		}
	}
	r.do(t, http.MethodGet, "/attachments", nil, &answer)
	list := []string{}
	for _, a := range answer.Attachments {
		if a.Volume == volume {
			list = append(list, a.Status+" "+a.Instance)
		}
	}
	return list
}

// reserve creates an attachment record that Nova does not have. A failed attach leaves such a record if Nova cannot reach Cinder.
func (r records) reserve(t *testing.T, volume, server string, connector map[string]any) (id string) {
	t.Helper()
	body := map[string]any{"volume_uuid": volume, "instance_uuid": server}
	if connector != nil {
		body["connector"] = connector
	}
	var made struct{ Attachment struct{ ID string } }
	r.do(t, http.MethodPost, "/attachments", map[string]any{"attachment": body}, &made)
	return made.Attachment.ID
}

// asPerson is a cloud.conf with the password of the user demo of the bed. Cinder does not let an application credential delete a record that
// has reached a host.
func asPerson(t *testing.T, bed string) string {
	t.Helper()
	text := testfile.Read(t, filepath.Join(bed, "clouds.yaml"))
	var file struct {
		Clouds map[string]struct {
			Auth map[string]string
		}
	}
	testenv.Must(t, yaml.Unmarshal(text, &file))
	auth := file.Clouds["lab-demo"].Auth
	path := filepath.Join(t.TempDir(), "cloud.conf")
	conf := fmt.Sprintf("[Global]\nauth-url = %s\nregion = RegionOne\nusername = %s\npassword = %s\ntenant-name = %s\nuser-domain-name = %s\ntenant-domain-name = %s\n",
		auth["auth_url"], auth["username"], auth["password"], auth["project_name"], auth["user_domain_name"], auth["project_domain_name"])
	testfile.Write(t, path, conf, 0o600)
	return path
}

func publish(t *testing.T, d *driver, volume, server string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient(2*time.Minute))
	defer cancel()
	return csitest.Outcome(d.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: server, VolumeCapability: csitest.Single("")}))
}

func unpublish(t *testing.T, d *driver, volume, server string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(2*time.Minute))
	defer cancel()
	return csitest.Outcome(d.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: server}))
}

// attached are the servers that a volume is attached to, as the driver reports them.
func attached(t *testing.T, d *driver, volume string) []string {
	t.Helper()
	got := testenv.Value(d.controller.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: volume}))(t)
	return got.GetStatus().GetPublishedNodeIds()
}

// shareable creates a volume of a multiattach type. The end of the test deletes it.
func shareable(t *testing.T, d *driver) string {
	t.Helper()
	return newVolume(t, d, "", func(r *csi.CreateVolumeRequest) {
		r.Parameters = map[string]string{"type": "multiattach"}
		r.VolumeCapabilities[0].AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}).GetVolumeId()
}

func TestTwoServersShareAVolumeAndLeaveItOneByOneOrAtOnce(t *testing.T) {
	bed := bed(t)
	d := startDriver(t, bed)
	id := shareable(t, d)
	one, two := twoServers(t, bed)
	t.Cleanup(func() { _ = unpublish(t, d, id, "") })
	for _, server := range []string{one, two, one} { // and once more, which changes nothing
		testenv.Must(t, publish(t, d, id, server))
	}
	if got := attached(t, d, id); len(got) != 2 {
		t.Errorf("attached to %v", got)
	}
	testenv.Must(t, unpublish(t, d, id, one))
	if got := attached(t, d, id); len(got) != 1 || got[0] != two {
		t.Errorf("attached to %v", got)
	}
	testenv.Must(t, publish(t, d, id, one))
	for range 2 {
		if err := unpublish(t, d, id, ""); err != nil { // no node: all of them
			t.Fatal(err)
		}
	}
	if got := attached(t, d, id); len(got) != 0 {
		t.Errorf("attached to %v", got)
	}
}

func TestAVolumeAttachedElsewhereIsRefusedAndLeavesNoRecord(t *testing.T) {
	bed := bed(t)
	d, r := startDriver(t, bed), records{newCaller(t, bed, "lab-demo")}
	id := newVolume(t, d, "").GetVolumeId()
	one, two := twoServers(t, bed)
	t.Cleanup(func() { _ = unpublish(t, d, id, "") })
	testenv.Must(t, publish(t, d, id, one))
	if err := publish(t, d, id, two); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), one) {
		t.Errorf("got %v", err)
	}
	if got := r.of(t, id); len(got) != 1 || got[0] != "attached "+one {
		t.Errorf("records %v", got)
	}
	if err := unpublish(t, d, id, two); err != nil { // where it never was
		t.Error(err)
	}
	testenv.Must(t, unpublish(t, d, id, one))
}

func TestWhatAFailedAttachHasLeftIsClearedAway(t *testing.T) {
	bed := bed(t)
	r, server := records{newCaller(t, bed, "lab-demo")}, serverNamed(t, bed, "node-az1")
	for name, test := range map[string]struct {
		connector map[string]any
		conf      func(t *testing.T, bed string) string
	}{
		"reserved":  {nil, leastRights},
		"attaching": {host, asPerson},
	} {
		t.Run(name, func(t *testing.T) {
			id := newVolume(t, startDriverWith(t, bed, test.conf(t, bed)), "").GetVolumeId()
			d := startDriverWith(t, bed, test.conf(t, bed)) // a driver without a cached state of the volume
			t.Cleanup(func() { _ = unpublish(t, d, id, "") })
			r.reserve(t, id, server, test.connector)
			if got := r.of(t, id); len(got) != 1 || got[0] != name+" "+server {
				t.Fatalf("the test's own record is %v", got)
			}
			testenv.Must(t, publish(t, d, id, server))
			if got := r.of(t, id); len(got) != 1 || got[0] != "attached "+server {
				t.Errorf("records %v", got)
			}
			testenv.Must(t, unpublish(t, d, id, server))
			r.reserve(t, id, server, test.connector)
			began := time.Now()
			testenv.Must(t, unpublish(t, d, id, server))
			if got := r.of(t, id); len(got) != 0 || time.Since(began) < 10*time.Second {
				t.Errorf("records %v after %v", got, time.Since(began))
			}
		})
	}
}

// host is a connector: the properties of a server's host that os-brick reports to Cinder.
var host = map[string]any{"host": "a-host", "ip": "127.0.0.1", "platform": "x86_64", "os_type": "linux", "multipath": false, "initiator": "iqn.1993-08.org.debian:01:test", "mountpoint": "/dev/vdb"}

func TestTheRecordOfAServerThatNoLongerExistsIsClearedAway(t *testing.T) {
	bed := bed(t)
	d, r := startDriverWith(t, bed, asPerson(t, bed)), records{newCaller(t, bed, "lab-demo")}
	const gone = "7f3c9a51-0d53-4a5e-8d7e-6f6f2c1b9a10"
	id := newVolume(t, d, "").GetVolumeId()
	record := r.reserve(t, id, gone, host)
	t.Cleanup(func() { _ = unpublish(t, d, id, "") })
	r.do(t, http.MethodPost, "/attachments/"+record+"/action", map[string]any{"os-complete": map[string]any{}}, nil)
	if got := attached(t, d, id); len(got) != 1 || got[0] != gone {
		t.Fatalf("the test's own record is %v", got)
	}
	if err := publish(t, d, id, serverNamed(t, bed, "node-az1")); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), gone) {
		t.Errorf("attach elsewhere: %v", err)
	}
	if got := r.of(t, id); len(got) != 1 {
		t.Fatalf("records %v", got)
	}
	deletes := startDriver(t, bed)              // with an application credential
	if settingsOf(t, bed).Cloud != "victoria" { // its Cinder does not ask Nova before it deletes a record
		if err := unpublish(t, deletes, id, gone); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "volume attachment delete "+record) {
			t.Errorf("with an application credential: %v", err)
		}
		deletes = d
	}
	began := time.Now()
	testenv.Must(t, unpublish(t, deletes, id, gone))
	if got := r.of(t, id); len(got) != 0 || time.Since(began) < 10*time.Second {
		t.Errorf("records %v after %v", got, time.Since(began))
	}
	testenv.Must(t, publish(t, d, id, serverNamed(t, bed, "node-az1")))
	testenv.Must(t, unpublish(t, d, id, ""))
}

// Eight attaches run at once on one server. The driver sends them to Nova one after the other, so none fails.
func TestEightVolumesAreAttachedToOneServerAtOnce(t *testing.T) {
	bed := bed(t)
	d, server := startDriver(t, bed), serverNamed(t, bed, "node-az1")
	ids := make([]string, 8)
	atOnce(t, ids, func(i int) error { ids[i] = newVolume(t, d, "").GetVolumeId(); return nil })
	t.Cleanup(func() { atOnce(t, ids, func(i int) error { return unpublish(t, d, ids[i], server) }) })
	t.Log("attached after", atOnce(t, ids, func(i int) error { return publish(t, d, ids[i], server) }))
	t.Log("detached after", atOnce(t, ids, func(i int) error { return unpublish(t, d, ids[i], server) }))
}

// atOnce calls do for all volumes at the same time, and returns the durations.
func atOnce(t *testing.T, ids []string, do func(i int) error) []time.Duration {
	t.Helper()
	times := make([]time.Duration, len(ids))
	began := time.Now()
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			testenv.Check(t, do(i))
			times[i] = time.Since(began).Round(10 * time.Millisecond)
		})
	}
	all.Wait()
	slices.Sort(times)
	return times
}
