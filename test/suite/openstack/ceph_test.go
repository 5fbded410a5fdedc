//go:build openstack

package openstack

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// backendOf is where a bed keeps its volumes.
func backendOf(t *testing.T, bed string) string { return settingsOf(t, bed).Backend }

// settings are the part of bed.json that says which cloud it is.
type settings struct {
	Cloud, Backend, Compute string
	VolumeZones             string `json:"cinder_azs"`
	ZoneFallback            bool   `json:"az_fallback"`
}

func settingsOf(t *testing.T, bed string) (s settings) {
	t.Helper()
	text := testfile.Read(t, filepath.Join(bed, "bed.json"))
	testenv.Must(t, json.Unmarshal(text, &s))
	return s
}

// object is a volume, a snapshot or a backup in Cinder.
type object struct{ kind, id string }

// make creates an object and waits until it is available.
func (x *tenant) make(t *testing.T, kind string, fields map[string]any) object {
	t.Helper()
	answer := map[string]struct{ ID string }{}
	began := time.Now()
	send(t, x.cinder, http.MethodPost, kind+"s", map[string]any{kind: fields}, &answer)
	o := object{kind, answer[kind].ID}
	x.await(t, o, "available")
	t.Logf("%s %s %v: %s", kind, o.id, fields, time.Since(began).Round(100*time.Millisecond))
	return o
}

// status is the status of an object; "gone" if Cinder has none.
func (x *tenant) status(t *testing.T, o object) string {
	t.Helper()
	answer := map[string]struct{ Status string }{}
	err := ask(t, x.cinder, http.MethodGet, o.kind+"s/"+o.id, nil, &answer)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer[o.kind].Status
}

func (x *tenant) await(t *testing.T, o object, want string) {
	t.Helper()
	eventually(t, o.kind+" "+o.id+" is "+want, func() bool { return x.status(t, o) == want })
}

// remove deletes an object and returns how that ends: "gone", the status of an object that stays, or the refusal.
func (x *tenant) remove(t *testing.T, o object) string {
	t.Helper()
	err := ask(t, x.cinder, http.MethodDelete, o.kind+"s/"+o.id, nil, nil)
	if refused := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &refused) {
		return string(refused.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	end := ""
	eventually(t, o.kind+" "+o.id+" is not being deleted", func() bool { end = x.status(t, o); return end != "deleting" })
	return end
}

// act makes an action of a volume.
func (x *tenant) act(t *testing.T, o object, action string, fields map[string]any) {
	t.Helper()
	send(t, x.cinder, http.MethodPost, o.kind+"s/"+o.id+"/action", map[string]any{action: fields}, nil)
}

// Images of Ceph depend on each other. A clone depends on the snapshot that it was made from, and an incremental backup on a snapshot. No
// user of Cinder sees that in a delete.
func TestCephDeletesWhatHasClonesAndBackups(t *testing.T) {
	bed := bed(t)
	if backendOf(t, bed) != "ceph" {
		t.Skip("the cloud has no Ceph")
	}
	x := newTenant(t, bed, zonesOfBed[0])
	gone := func(what string, o object) {
		t.Helper()
		began := time.Now()
		if end := x.remove(t, o); end != "gone" {
			t.Errorf("delete of %s: want it gone, got %s", what, end)
		}
		t.Logf("delete of %s: %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	source := x.make(t, "volume", map[string]any{"size": 1})
	first := x.make(t, "snapshot", map[string]any{"volume_id": source.id})
	restored := x.make(t, "volume", map[string]any{"size": 1, "snapshot_id": first.id})
	larger := x.make(t, "volume", map[string]any{"size": 2, "snapshot_id": first.id})
	clone := x.make(t, "volume", map[string]any{"size": 1, "source_volid": source.id})
	second := x.make(t, "volume", map[string]any{"size": 1, "source_volid": clone.id})
	gone("a snapshot with two volumes made from it", first)
	gone("a volume with four volumes that depend on it", source)
	gone("a clone with a clone", clone)
	later := x.make(t, "snapshot", map[string]any{"volume_id": second.id})
	if end := x.remove(t, second); end == "gone" || end == "available" {
		t.Errorf("delete of a volume with a snapshot: want a refusal, got %q", end)
	}
	gone("the snapshot of a clone of a clone", later)
	for _, o := range []object{second, larger, restored} {
		gone("what remains", o)
	}

	used := x.make(t, "volume", map[string]any{"size": 1})
	send(t, x.nova, http.MethodPost, "servers/"+x.servers[0].id+"/os-volume_attachments", map[string]any{"volumeAttachment": map[string]any{"volumeId": used.id}}, nil)
	x.await(t, used, "in-use")
	inUse := x.make(t, "snapshot", map[string]any{"volume_id": used.id, "force": true})
	gone("a snapshot of a volume in use", inUse)
	x.act(t, used, "os-extend", map[string]any{"new_size": 2})
	x.await(t, used, "in-use")
	send(t, x.nova, http.MethodDelete, "servers/"+x.servers[0].id+"/os-volume_attachments/"+used.id, nil, nil)
	x.await(t, used, "available")

	point := x.make(t, "snapshot", map[string]any{"volume_id": used.id})
	x.act(t, used, "revert", map[string]any{"snapshot_id": point.id})
	x.await(t, used, "available")
	gone("the snapshot of a revert", point)

	full := x.make(t, "backup", map[string]any{"volume_id": used.id})
	increment := x.make(t, "backup", map[string]any{"volume_id": used.id, "incremental": true})
	if end := x.remove(t, full); end == "gone" {
		t.Error("Cinder deleted a backup that an increment depends on")
	}
	gone("a volume with two backups", used)
	gone("an increment without its volume", increment)
	gone("a full backup without its volume", full)

	moved := x.make(t, "volume", map[string]any{"size": 1, "volume_type": "standard"})
	x.act(t, moved, "os-retype", map[string]any{"new_type": "fast", "migration_policy": "on-demand"})
	x.await(t, moved, "available")
	gone("a volume that moved to another pool", moved)
}

// A second backup of a snapshot would fail in Ceph, and its delete would delete the data of the first. The driver refuses it.
func TestCephKeepsOneBackupOfASnapshotForEachVolume(t *testing.T) {
	if backendOf(t, bed(t)) != "ceph" {
		t.Skip("the cloud has no Ceph")
	}
	d := startDriver(t, bed(t))
	near := d.near(t)
	v := newVolume(t, d, "xfs", near)
	m := mount(t, d, v, "xfs")
	data := []byte("in the only backup " + rand.Text())
	testenv.Must(t, writeAt(m.file(), data))
	m.down(t, t.Context())
	first, _ := newBackup(t, d, v.GetVolumeId(), "true")
	_, err := d.controller.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{
		Name: "bed-" + rand.Text(), SourceVolumeId: v.GetVolumeId(), Parameters: map[string]string{"type": "backup"},
	})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), first) {
		t.Errorf("a second backup: want FailedPrecondition that names %s, got %v", first, err)
	}
	restored := newVolume(t, d, "xfs", near, csitest.FromSnapshot(first))
	mount(t, d, restored, "xfs").wantData(t, data)
}

// Cinder 26 leaves out each 128 MiB of zeros if it makes a volume from a backup in Ceph. It writes what follows them too early. So the driver
// restores into an empty volume. For the second volume, a driver is killed between the create and the restore. For the third, one is killed
// during the restore.
func TestCephRestoresABackupWithZerosByteForByte(t *testing.T) {
	if backendOf(t, bed(t)) != "ceph" {
		t.Skip("the cloud has no Ceph")
	}
	d := startDriver(t, bed(t))
	own := connect(t, cloud.Source{CloudName: "lab-demo", CloudsFile: filepath.Join(bed(t), "clouds.yaml"), Env: func(string) string { return "" }})
	x := &tenant{cinder: service(t, own, "block-storage", "")} // the project of the driver
	near := d.near(t)
	v := newVolume(t, d, "", near)
	m := mount(t, d, v, "")
	writeBlocks(t, m.file())
	want := sumOf(t, m.file())
	m.down(t, t.Context())
	backup, _ := newBackup(t, d, v.GetVolumeId(), "false")

	check := func(what string, v *csi.Volume) {
		t.Helper()
		var cinder struct {
			Volume struct{ Metadata map[string]string }
		}
		testenv.Must(t, ask(t, x.cinder, http.MethodGet, "volumes/"+v.GetVolumeId(), nil, &cinder))
		if of := cinder.Volume.Metadata; contract.RestoreFrom(of) != "" || of[contract.MetadataCluster] != "bed" || of[contract.MetadataSourceBackup] != backup {
			t.Errorf("%s: metadata %v", what, of)
		}
		m := mount(t, d, v, "")
		if got := sumOf(t, m.file()); got != want {
			t.Errorf("%s: the data differs from that of the original", what)
		}
		m.down(t, t.Context())
	}
	began := time.Now()
	restored := newVolume(t, d, "", near, csitest.FromSnapshot(backup))
	t.Logf("restored after %s", time.Since(began).Round(100*time.Millisecond))
	check("restored", restored)

	for _, when := range []string{"creating", "restoring-backup"} {
		request := func(name string) *csi.CreateVolumeRequest {
			return csitest.Claim(name, csitest.As(csitest.Single("")), near, csitest.FromSnapshot(backup))
		}
		name, doomed := "bed-"+rand.Text(), startDriver(t, bed(t))
		if when == "creating" { // Ceph makes an empty volume in less time than one look takes
			testfile.Write(t, filepath.Join(bed(t), "state", "faults", "create_volume"), "delay=6 once\n", 0o644)
		}
		answer := make(chan error, 1)
		go func() {
			_, err := doomed.controller.CreateVolume(t.Context(), request(name))
			answer <- err
		}()
		var found struct {
			Volumes []struct{ ID, Status string }
		}
		eventually(t, "the new volume is "+when, func() bool {
			err := ask(t, x.cinder, http.MethodGet, "volumes/detail?name="+name, nil, &found)
			return err == nil && len(found.Volumes) == 1 && found.Volumes[0].Status == when
		})
		doomed.kill(t)
		if err := <-answer; err == nil {
			t.Fatalf("%s: the driver was killed too late", when)
		}
		if when == "creating" {
			id := found.Volumes[0].ID
			x.await(t, object{"volume", id}, "available")
			_, err := d.controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: m.server, VolumeCapability: csitest.Single("")})
			if err == nil || !strings.Contains(err.Error(), "does not have the data of backup "+backup) {
				t.Errorf("attach of an empty volume: want an error that names backup %s, got %v", backup, err)
			}
		}
		began := time.Now()
		for {
			_, err := d.controller.CreateVolume(t.Context(), request(name))
			if err == nil {
				break
			}
			if code := status.Code(err); code != codes.Aborted && code != codes.Unavailable && code != codes.DeadlineExceeded || time.Since(began) > 6*time.Minute {
				t.Fatalf("%s: %v", when, err)
			}
			time.Sleep(5 * time.Second)
		}
		t.Logf("killed while %s: the next driver returned the volume after %s", when, time.Since(began).Round(time.Second))
		again := newVolume(t, d, "", near, csitest.FromSnapshot(backup), func(r *csi.CreateVolumeRequest) { r.Name = name })
		if again.GetVolumeId() != found.Volumes[0].ID {
			t.Errorf("%s: want the volume of the killed driver, %s, got %s", when, found.Volumes[0].ID, again.GetVolumeId())
		}
		check("after a kill while "+when, again)
	}
}

// sumOf is a checksum of a whole disk.
func sumOf(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	f := testenv.Value(os.Open(path))(t)
	defer f.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err != nil || n < 1<<30 {
		t.Fatalf("read %d bytes of %s: %v", n, path, err)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
