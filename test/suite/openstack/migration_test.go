//go:build openstack

package openstack

import (
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// move changes the type of a volume through the driver, with the policy that allows Cinder to move it.
type move struct {
	*driver
	admin admin
}

func (m move) to(t *testing.T, v *csi.Volume, kind string) error {
	t.Helper()
	began := time.Now()
	_, err := m.controller.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{
		VolumeId: v.GetVolumeId(), MutableParameters: map[string]string{"type": kind, "policy": "on-demand"},
	})
	t.Logf("to %s after %s: %v", kind, time.Since(began).Round(100*time.Millisecond), err)
	return err
}

// want fails the test unless the volume has this status and type, and is in the backend of the type.
func (m move) want(t *testing.T, v *csi.Volume, inStatus, kind, backend string) {
	t.Helper()
	var shown struct {
		Volume struct {
			Status string
			Type   string `json:"volume_type"`
			Host   string `json:"os-vol-host-attr:host"`
		}
	}
	m.admin.call(t, http.MethodGet, "/volumes/"+v.GetVolumeId(), nil, &shown)
	if got := shown.Volume; got.Status != inStatus || got.Type != kind || !strings.HasPrefix(got.Host, backend+"#") {
		t.Errorf("want a volume that is %s, of type %s, on %s; got %+v", inStatus, kind, backend, got)
	}
}

// writeBlocks writes random data at places with much zeros between them.
func writeBlocks(t *testing.T, path string) {
	t.Helper()
	device := testenv.Value(os.OpenFile(path, os.O_WRONLY, 0))(t)
	for _, at := range []int64{4 << 10, 300 << 20, 620 << 20, 1<<30 - 64<<10} {
		testenv.Value(device.WriteAt([]byte(strings.Repeat(rand.Text(), 1000)), at))(t)
	}
	testenv.Must(t, errors.Join(device.Sync(), device.Close()))
}

// Cinder moves a volume between Ceph and another backend by a copy of all its bytes. A volume with a snapshot stays where it is. So does a volume in
// use, because Nova's driver of the bed cannot change the disk of a server.
func TestCephGivesAVolumeToAnotherBackendAndTakesItBack(t *testing.T) {
	if backendOf(t, bed(t)) != "ceph" {
		t.Skip("the cloud has no Ceph")
	}
	d := startDriver(t, bed(t))
	m := move{d, newAdmin(t, bed(t))}
	files := "files-" + strings.ToLower(rand.Text())
	m.admin.addType(t, files, map[string]string{"volume_backend_name": "files"})
	const ceph, file = "lab@backend-az1", "lab@backend-az1-files"
	v := newVolume(t, d, "", d.near(t))
	used := mount(t, d, v, "")
	writeBlocks(t, used.file())
	sum := sumOf(t, used.file())

	stays := func(what, status string, kind, backend, text string, target string) {
		t.Helper()
		if err := m.to(t, v, target); !refused(err, text) {
			t.Errorf("%s: want FailedPrecondition with %q, got %v", what, text, err)
		}
		m.want(t, v, status, kind, backend)
	}
	stays("in use", "in-use", "standard", ceph, "did not carry it out", files)
	if sumOf(t, used.file()) != sum {
		t.Error("in use: the data differs after the refused move")
	}
	writeBlocks(t, used.file()) // it still takes writes
	sum = sumOf(t, used.file())
	used.down(t, t.Context())

	point := newSnapshot(t, d, v.GetVolumeId())
	stays("with a snapshot", "available", "standard", ceph, "snapshot "+point.GetSnapshotId()+" with metadata", files)
	deleteSnapshot(t, d, point.GetSnapshotId())

	for _, to := range []struct{ kind, backend string }{{files, file}, {"standard", ceph}, {files, file}, {"fast", ceph + "-fast"}} {
		testenv.Must(t, m.to(t, v, to.kind))
		m.want(t, v, "available", to.kind, to.backend)
		used.up(t, t.Context())
		if sumOf(t, used.file()) != sum {
			t.Errorf("moved to %s: the data differs", to.kind)
		}
		writeBlocks(t, used.file())
		sum = sumOf(t, used.file())
		if to.kind == files {
			stays("in use in a file", "in-use", files, file, "did not carry it out", "standard")
		}
		used.down(t, t.Context())
		copied := newVolume(t, d, "", csitest.FromVolume(v.GetVolumeId()))
		other := mount(t, d, copied, "")
		if sumOf(t, other.file()) != sum {
			t.Errorf("a clone of the volume in %s: the data differs", to.kind)
		}
		other.down(t, t.Context())
	}
}

func refused(err error, text string) bool {
	return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), text)
}
