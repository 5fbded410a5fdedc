//go:build openstack

package openstack

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// disk is the path of a volume on a server of the tenant.
func (x *tenant) disk(at server, volume, file string) string {
	root := filepath.Join(x.bed, "servers", "by-name", at.name)
	if file == "" {
		return filepath.Join(root, "by-id", "virtio-"+volume[:20])
	}
	serials, _ := filepath.Glob(filepath.Join(root, "sys", "block", "*", "serial"))
	for _, serial := range serials {
		if text, err := os.ReadFile(serial); err == nil && strings.TrimSpace(string(text)) == volume[:20] {
			return filepath.Join(filepath.Dir(serial), file)
		}
	}
	return ""
}

// wantOn wants the disk of a volume on a server to start with some data.
func (x *tenant) wantOn(t *testing.T, at server, volume string, want []byte) {
	t.Helper()
	f := testenv.Value(os.Open(x.disk(at, volume, "")))(t)
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.Read(got); err != nil || !bytes.Equal(want, got) {
		t.Errorf("volume %s at server %s: want %q, got %q, %v", volume, at.name, want, got, err)
	}
}

// The test starts and ends with an empty project. While two servers use a volume, the test expands it, takes a snapshot, clones it, and makes
// a full and an incremental backup. Each volume from these has the data of the time of the copy. One copy changes its type. Ceph keeps one backup
// of a snapshot for each volume, so a cloud with Ceph gets no incremental one.
func TestAWholeLifeLeavesNothing(t *testing.T) {
	began := time.Now()
	stage := func(what string) { t.Logf("%5.1f s: %s", time.Since(began).Seconds(), what) }
	x := newTenant(t, bed(t), zonesOfBed[0], secondZone(t, bed(t)))
	one, two := x.servers[0], x.servers[1]
	empty := func() {
		t.Helper()
		if held := x.holds(t); len(held) > 0 {
			t.Errorf("the project holds %v, want nothing", held)
		}
	}
	empty()
	t.Cleanup(empty) // runs after the deletion of all objects of the test
	d := x.start(t, one)
	stage("the servers are there")

	shared := newVolume(t, d, "", func(r *csi.CreateVolumeRequest) {
		r.Parameters = map[string]string{"type": "multiattach"}
		r.VolumeCapabilities[0].AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	})
	id := shared.GetVolumeId()
	m := mount(t, d, shared, "")
	testenv.Must(t, publish(t, d, id, two.id))
	t.Cleanup(func() {
		testenv.Check(t, unpublish(t, d, id, two.id))
	})
	text := func(moment string) []byte { return fmt.Appendf(nil, "%-24s%s", moment, rand.Text()) }
	first := text("written at one server")
	testenv.Must(t, writeAt(m.file(), first))
	x.wantOn(t, two, id, first)
	stage("two servers share a volume")

	grown, err := d.controller.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
		VolumeId: id, VolumeCapability: m.capability, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30},
	})
	if err != nil || grown.GetCapacityBytes() != 2<<30 {
		t.Fatalf("want 2 GiB, got %v, %v", grown, err)
	}
	eventually(t, "the disk has grown at a server", func() bool {
		sectors, _ := os.ReadFile(x.disk(one, id, "size"))
		return strings.TrimSpace(string(sectors)) == "4194304"
	})
	stage("it has grown in use")

	shot := newSnapshot(t, d, id).GetSnapshotId()
	full, _ := newBackup(t, d, id, "false")
	stage("a snapshot and a backup of it in use")
	second := text("after the snapshot")
	testenv.Must(t, writeAt(m.file(), second))
	backups := []string{full}
	if backendOf(t, bed(t)) != "ceph" {
		part, _ := newBackup(t, d, id, "true")
		backups = append(backups, part)
		stage("an incremental backup of it in use")
	}

	snapshot := csitest.FromSnapshot
	type copied struct {
		name   string
		source func(*csi.CreateVolumeRequest)
		want   []byte
	}
	copies := []copied{{"snapshot", snapshot(shot), first}, {"clone", csitest.FromVolume(id), second}, {"full backup", snapshot(full), first}}
	if len(backups) > 1 {
		copies = append(copies, copied{"incremental backup", snapshot(backups[1]), second})
	}
	for _, test := range copies {
		made := newVolume(t, d, "", test.source, func(r *csi.CreateVolumeRequest) {
			r.CapacityRange.RequiredBytes = 2 << 30
			r.Parameters = map[string]string{"type": "multiattach"}
			r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: shared.GetAccessibleTopology()}
		})
		copied := mount(t, d, made, "")
		copied.wantData(t, test.want)
		stage("a volume of the " + test.name)
		if test.name != "clone" {
			continue
		}
		copied.down(t, t.Context())
		change := &csi.ControllerModifyVolumeRequest{VolumeId: copied.id, MutableParameters: map[string]string{"type": "fast", "policy": "on-demand"}}
		testenv.Value(d.controller.ControllerModifyVolume(t.Context(), change))(t)
		copied.up(t, t.Context())
		copied.wantData(t, test.want)
		stage("the clone has another type, on another pool")
	}
	volumes, attachments := 1+len(copies), 2+len(copies)
	if held := x.holds(t); held["volumes"] != volumes || held["snapshots"] != 1 || held["backups"] != len(backups) || held["attachments"] != attachments {
		t.Errorf("the project holds %v, want %d volumes, 1 snapshot, %d backups, %d attachments", held, volumes, len(backups), attachments)
	}
	t.Cleanup(func() { stage("all is ready to be deleted") })
	for _, id := range slices.Backward(backups) { // the incremental one first
		deleteSnapshot(t, d, id)
	}
}
