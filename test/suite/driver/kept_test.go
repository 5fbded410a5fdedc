package driver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// What a server still has, or may have, when its volume seems to be detached, and what a detach does about it.
func TestADetachEndsEveryAttachmentOfTheServer(t *testing.T) {
	az1, az2 := servers()
	for name, test := range map[string]struct {
		before   func(sim *openstacksim.Sim, id string) // the detach
		stays    bool                                   // the second attachment
		harmless bool                                   // it holds nothing up
	}{
		"a reservation that a failed live migration left": {before: func(sim *openstacksim.Sim, _ string) { sim.FailLiveMigration(az1) }},
		"two of them":               {before: func(sim *openstacksim.Sim, _ string) { sim.FailLiveMigration(az1); sim.FailLiveMigration(az1) }},
		"an attachment that failed": {before: func(sim *openstacksim.Sim, id string) { sim.AddAttachment(id, az1, "error_attaching") }, harmless: true},
		"a reservation while the server migrates": {
			before: func(sim *openstacksim.Sim, _ string) {
				sim.FailLiveMigration(az1)
				sim.SetServerStatus(az1, "MIGRATING", "")
			}, stays: true,
		},
		"a reservation of another server": {before: func(sim *openstacksim.Sim, id string) { sim.AddAttachment(id, az2, "reserved") }, stays: true},
	} {
		story(t, name, func(t *testing.T) {
			sim, d := started(t)
			id := made(t, d)
			testenv.Must(t, publish(t, d, id, az1))
			test.before(sim, id)
			err := unpublish(t, d, id, az1)
			if n := sent(sim, http.MethodDelete, "/attachments/"); test.stays && n != 0 {
				t.Errorf("%d attachments deleted", n)
			}
			if test.stays {
				return
			}
			if v, _ := sim.VolumeState(id); err != nil || v.Status != "available" {
				t.Errorf("%v, and the volume is %s", err, v.Status)
			}
			if err := publish(t, d, id, az2); err != nil {
				t.Errorf("the attach to the next server: %v", err)
			}
			testenv.Check(t, unpublish(t, d, id, az2))
			if test.harmless { // Cinder deletes a volume with a failed attachment, and the simulation does not
				return
			}
			if _, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
				t.Errorf("the delete: %v", err)
			}
		})
	}
}

// Cinder hides the attachments, and something is left of the detach that only an administrator sees: the answer says so.
func TestADetachNamesAReservationThatCinderHides(t *testing.T) {
	az1, az2 := servers()
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, az1))
		sim.FailLiveMigration(az1)
		sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/attachments", Status: http.StatusForbidden})
		wantCode(t, unpublish(t, d, id, az1), codes.FailedPrecondition, "volume attachment list --volume-id "+id)
		sim.ClearFaults()
		testenv.Must(t, unpublish(t, d, id, az1))
		// One that is on its way elsewhere ends the call in time.
		sim.SetLatency(openstacksim.Attach, 30*time.Second)
		go func() { _ = publish(t, d, id, az2) }()
		time.Sleep(10 * time.Second)
		sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/attachments", Status: http.StatusForbidden})
		if _, _, err := repeated(func() error { return unpublish(t, d, id, az1) }); err != nil {
			t.Error(err)
		}
	})
}

// A leftover that harms nothing, and that the credential may not delete, does not stop the move of a volume.
func TestALeftoverOfAnAvailableVolumeStopsNoMove(t *testing.T) {
	az1, az2 := servers()
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := made(t, d)
		sim.AddAttachment(id, az1, "error_attaching")
		sim.SetFault(openstacksim.Fault{Method: http.MethodDelete, Path: "/volume/v3/*/attachments/*", Status: http.StatusForbidden})
		if v, _ := sim.VolumeState(id); v.Status != "available" {
			t.Fatal(v.Status)
		}
		testenv.Check(t, unpublish(t, d, id, az1))
		testenv.Check(t, publish(t, d, id, az2))
	})
}

// Cinder may ask Nova about every attachment that has a server and a connection, whatever its status (is_safe_delete in volume/api.py). Where it refuses the
// delete of a leftover that blocks the volume, the detach is not done, and the answer has the command.
func TestALeftoverThatCinderKeepsEndsNoDetach(t *testing.T) {
	az1, _ := servers()
	for _, left := range []string{"reserved", "attaching", "attached", "detaching"} {
		story(t, left, func(t *testing.T) {
			sim, d := started(t)
			id := made(t, d)
			attachment := sim.AddAttachment(id, az1, left)
			sim.SetFault(openstacksim.Fault{
				Method: http.MethodDelete, Path: "/volume/v3/*/attachments/*", Status: http.StatusConflict,
				Message: "ConflictNovaUsingAttachment: Detach volume from instance " + az1 + " using the Compute API",
			})
			err := unpublish(t, d, id, az1)
			if err == nil {
				t.Fatalf("the detach counts as done, and the attachment is %s", left)
			}
			if text := status.Convert(err).Message(); !strings.Contains(text, "volume attachment delete "+attachment) {
				t.Errorf("no command in %q", text)
			}
		})
	}
}

func TestAPlainDetachTakesFourRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		sim.SetLatency(openstacksim.Detach, 100*time.Millisecond)
		d := startWith(t, sim)
		id := made(t, d)
		az1, _ := servers()
		testenv.Must(t, publish(t, d, id, az1))
		time.Sleep(time.Minute - 10*time.Second)
		sim.ResetRequests()
		testenv.Must(t, unpublish(t, d, id, az1))
		if n := len(sim.Requests()); n > 4 {
			t.Errorf("%d requests: %v", n, sim.Requests())
		}
	})
}

// The database ignores the case of IDs, and only a VolumeAttachment that somebody made has capitals.
func TestIDsInCapitalsNameTheSameObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		d := startWith(t, sim)
		id := made(t, d)
		az1, _ := servers()
		testenv.Must(t, publish(t, d, strings.ToUpper(id), strings.ToUpper(az1)))
		for range 2 {
			testenv.Must(t, unpublish(t, d, strings.ToUpper(id), strings.ToUpper(az1)))
			if v, _ := sim.VolumeState(id); v.Status != "available" || len(v.Disks) != 0 {
				t.Errorf("detached, and the volume is %s at %v", v.Status, v.Disks)
			}
		}
	})
}

// Cinder does not show that Nova detaches a volume that is being moved. Until the host has had its time, in-use says nothing.
func TestADetachWaitsForAVolumeThatIsBeingMoved(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		code  codes.Code
	}{"5 s": {5 * time.Second, codes.OK}, "70 s": {70 * time.Second, codes.OK}, "never": {time.Hour, codes.FailedPrecondition}} {
		story(t, name, func(t *testing.T) {
			sim := openstacksim.New(openstacksim.Default())
			d := startWith(t, sim)
			id := made(t, d)
			az1, _ := servers()
			testenv.Must(t, publish(t, d, id, az1))
			sim.SetLatency(openstacksim.Detach, test.takes)
			sim.SetMoving(id, true)
			if err := unpublish(t, d, id, az1); status.Code(err) != test.code {
				t.Error(err)
			}
		})
	}
}

// The backend keeps what somebody deletes: a client that crashed still holds an image in Ceph, or volumes depend on a snapshot. Each time Cinder
// restores the status, and the answer says so soon.
func TestWhatTheBackendKeepsIsDeletedSoonAfter(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, d *instance, sim *openstacksim.Sim) (id string, remove func() error)
		code codes.Code
		text string
	}{
		"a volume": {func(t *testing.T, d *instance, _ *openstacksim.Sim) (string, func() error) {
			id := made(t, d)
			return id, func() error { return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) }
		}, codes.Aborted, "the backend kept volume"},
		"a snapshot": {func(t *testing.T, d *instance, _ *openstacksim.Sim) (string, func() error) {
			id := ready(t, d, snapshotRequest("snapshot-1", made(t, d))).GetSnapshotId()
			return id, func() error {
				return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id}))
			}
		}, codes.FailedPrecondition, "Snapshot is busy"},
	} {
		story(t, name, func(t *testing.T) {
			sim := openstacksim.New(openstacksim.Default())
			d := startWith(t, sim)
			id, remove := test.make(t, d, sim)
			sim.SetMessageLag(200 * time.Millisecond)
			time.Sleep(time.Minute)
			sim.SetBusy(id, true)
			time.AfterFunc(30*time.Second, func() { sim.SetBusy(id, false) })
			wantCode(t, remove(), test.code, test.text)
			if took, calls, err := repeated(remove); err != nil || took > time.Minute {
				t.Errorf("%v after %v and %d calls", err, took, calls)
			}
		})
	}
}

// The driver itself deletes a volume that Cinder could not create. If the backend keeps it, a retry goes on.
func TestAFailedVolumeThatTheBackendKeepsIsDeletedByARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		d := startWith(t, sim)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		time.AfterFunc(time.Second, func() {
			for _, v := range sim.VolumeStates() {
				sim.SetBusy(v.ID, true)
			}
		})
		time.AfterFunc(20*time.Second, func() {
			for _, v := range sim.VolumeStates() {
				sim.SetBusy(v.ID, false)
			}
		})
		if took, _, err := repeated(func() error { return outcome(d.CreateVolume(asSidecar(t), claim("pvc-1"))) }); err != nil || took > time.Minute || len(sim.VolumeStates()) != 1 {
			t.Errorf("%v after %v, and %d volumes", err, took, len(sim.VolumeStates()))
		}
	})
}

func TestASnapshotWithVolumesOfItIsKeptByTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetCopyOnWrite(true)
		d := startWith(t, sim)
		snapshot := ready(t, d, snapshotRequest("snapshot-1", made(t, d))).GetSnapshotId()
		v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(snapshot)))).GetVolume().GetVolumeId()
		remove := func() error {
			return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: snapshot}))
		}
		wantCode(t, remove(), codes.FailedPrecondition, "volumes created from the snapshot")
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: v}))
		testenv.Check(t, remove())
	})
}

// A retention job deletes the oldest object while the driver reads a list page by page. That is no final answer, and names nobody's object.
func TestAnObjectDeletedWhileAListIsReadIsNoFinalAnswer(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, d *instance, id string) error{
		"a retype": func(t *testing.T, d *instance, id string) error {
			return outcome(d.ControllerModifyVolume(asSidecar(t), changed(id, map[string]string{"type": "__DEFAULT__"})))
		},
		"a snapshot": func(t *testing.T, d *instance, id string) error {
			return outcome(d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-new", id)))
		},
		"a backup": func(t *testing.T, d *instance, id string) error {
			return outcome(pursued(t, d, archive("backup-new", id)))
		},
		"an incremental backup": func(t *testing.T, d *instance, id string) error {
			return outcome(pursued(t, d, archive("backup-new", id, "incremental", "true")))
		},
		"a list of snapshots": func(t *testing.T, d *instance, _ string) error {
			return outcome(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{MaxEntries: 1}))
		},
	} {
		story(t, name, func(t *testing.T) {
			config := openstacksim.Default()
			config.PageSize = 2 // with 1, the marker would be the newest object
			sim := openstacksim.New(config)
			d := start(t, withPassword(t), memnet.Transport(sim.Handler()))
			id := made(t, d)
			for _, n := range []string{"1", "2", "3"} {
				newBackup(t, d, "backup-"+n, id)
				p, _ := sim.SnapshotState(ready(t, d, snapshotRequest("snapshot-"+n, id)).GetSnapshotId())
				p.Metadata = nil // made by hand: the first one with metadata would end the list
				testenv.Must(t, sim.PutSnapshot(p))
			}
			sim.SetRetention(true)
			if _, _, err := repeated(func() error {
				err := call(t, d, id)
				if err != nil && !slices.Contains(retryable, status.Code(err)) {
					t.Errorf("final: %v", err)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
