package errortable

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

const (
	gib      = 1 << 30
	zoneKey  = "topology.cinder.csi.openstack.org/zone"
	deadline = 3 * time.Minute // that of the sidecars
)

// world is a cloud, a driver and the prepared objects.
type world struct {
	t   *testing.T
	sim *openstacksim.Sim
	*inprocess.Driver
	csi.ControllerClient
	admin            *inprocess.Admin
	az1, az2         string // servers
	volume, snapshot string // prepared; empty if not
	lost             bool   // a server is gone and Cinder still has its attachment
}

// newWorld starts a cloud and a driver. Every operation takes as long as on a busy cloud, in virtual time.
func newWorld(t *testing.T) *world {
	t.Helper()
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(7 * time.Second)
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	d, servers := inprocess.Start(t, sim, "--with-capacity"), openstacksim.Default().Servers
	return &world{
		t: t, sim: sim, Driver: d, ControllerClient: csi.NewControllerClient(d), admin: inprocess.NewAdmin(t, sim),
		az1: servers[0].ID, az2: servers[1].ID,
	}
}

// do runs one call with the sidecars' deadline. If the call fails, do fails the test.
func (w *world) do(what string, call func(ctx context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	if err := call(ctx); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// made creates a volume and returns its ID.
func (w *world) made(req *csi.CreateVolumeRequest) string {
	w.t.Helper()
	var id string
	w.do("prepare a volume", func(ctx context.Context) error {
		answer, err := w.CreateVolume(ctx, req)
		id = answer.GetVolume().GetVolumeId()
		return err
	})
	return id
}

// justMade creates the volume that most RPCs are about.
func (w *world) justMade() { w.volume = w.made(csitest.Claim("prepared")) }

// prepared creates that volume, and waits until the driver has no cached state of it.
func (w *world) prepared() {
	w.justMade()
	time.Sleep(time.Minute)
}

func (w *world) justAttached(server string) {
	w.t.Helper()
	w.do("prepare an attachment", func(ctx context.Context) error { return w.publish(ctx, server) })
}

func (w *world) attached(server string) {
	w.t.Helper()
	w.justAttached(server)
	time.Sleep(time.Minute)
}

func (w *world) publish(ctx context.Context, server string) error {
	return csitest.Outcome(w.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: w.volume, NodeId: server, VolumeCapability: csitest.Mounted("")}))
}

func (w *world) unpublish(ctx context.Context, server string) error {
	return csitest.Outcome(w.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: w.volume, NodeId: server}))
}

// snapshotMade creates a snapshot of the prepared volume.
func (w *world) snapshotMade() {
	w.t.Helper()
	w.do("prepare a snapshot", func(ctx context.Context) error {
		answer, err := w.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "prepared", SourceVolumeId: w.volume})
		w.snapshot = answer.GetSnapshot().GetSnapshotId()
		return err
	})
	time.Sleep(time.Minute)
}

// backupMade creates a backup of the prepared volume and uses it in place of the snapshot.
func (w *world) backupMade() {
	w.t.Helper()
	w.snapshot = w.admin.Backup(w.volume)
	time.Sleep(time.Minute)
}

// cleared deletes all objects as Kubernetes would: it retries until each call succeeds.
func (w *world) cleared() {
	w.t.Helper()
	w.sim.ClearFaults()
	until := func(what string, call func(ctx context.Context) error) {
		w.t.Helper()
		for try := 0; ; try++ {
			ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
			err := call(ctx)
			cancel()
			if err == nil {
				return
			}
			if try == 10 {
				w.t.Errorf("%s never ends: %v", what, err)
				return
			}
			w.repaired()
			time.Sleep(time.Minute)
		}
	}
	if w.volume != "" {
		until("detaching", func(ctx context.Context) error { return w.unpublish(ctx, "") })
	}
	if w.snapshot != "" {
		until("deleting the snapshot", func(ctx context.Context) error {
			return csitest.Outcome(w.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: w.snapshot}))
		})
	}
	if w.volume != "" {
		until("deleting the volume", func(ctx context.Context) error {
			return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume}))
		})
	}
	time.Sleep(10 * time.Minute) // until the cloud has done all requests in progress
	for _, kind := range kinds {
		if left := w.admin.IDs(kind); len(left) > 0 {
			w.t.Errorf("%s are left: %v", kind, left)
		}
	}
}

// kinds are the kinds of objects of a project in Cinder.
var kinds = []string{"snapshots", "backups", "volumes"}

// repaired does what only an administrator can do. It resets objects whose deletion failed in the backend. It also deletes attachments
// of a removed server, because Cinder refuses that to application credentials.
func (w *world) repaired() {
	w.t.Helper()
	if w.lost {
		for _, id := range w.admin.IDs("attachments") {
			w.admin.Cinder(http.MethodDelete, "/attachments/"+id, "")
		}
	}
	for _, kind := range kinds {
		for id, status := range w.admin.Statuses(kind) {
			if status == "error_deleting" {
				w.admin.Reset(kind, id, "error")
			}
		}
	}
}

// nonFinal are the codes after which external-provisioner and external-snapshotter assume that the object may exist (isFinalError in
// each). They continue to retry even after the user has deleted the claim or VolumeSnapshot.
var nonFinal = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}

// sidecar is external-provisioner with a claim, or external-snapshotter with a VolumeSnapshot. The function make requests the object. It
// returns the ID, and whether the sidecar needs no further call. The function remove deletes the object.
type sidecar struct {
	make   func(ctx context.Context) (id string, done bool, err error)
	remove func(ctx context.Context, id string) error
}

// abandoned is the case in which the owner of the object is deleted right after an answer. After a final code the sidecar does nothing
// more. ResourceExhausted is final too: it only lets the scheduler choose another node. After other codes the sidecar retries, and deletes
// the object that it then gets. The faults of the cloud end after one retry.
func (s sidecar) abandoned(w *world, answer error) {
	w.t.Helper()
	for try := 0; slices.Contains(nonFinal, status.Code(answer)); try++ {
		if try == 10 {
			w.t.Fatalf("the sidecar retries without end: %v", answer)
		}
		if try == 1 {
			w.sim.ClearFaults()
		}
		time.Sleep(time.Second << min(try, 8))
		answer = s.once(w)
	}
	w.sim.ClearFaults()
}

// once makes one call. If the call creates the object, once deletes it and returns NotFound: the sidecar has nothing left to retry.
func (s sidecar) once(w *world) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	defer cancel()
	id, _, err := s.make(ctx)
	if err != nil {
		return err
	}
	w.sim.ClearFaults()
	s.discard(w, id)
	return status.Error(codes.NotFound, "deleted")
}

// discard deletes an object as a sidecar does: it retries after every code until the call succeeds.
func (s sidecar) discard(w *world, id string) {
	w.t.Helper()
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
		err := s.remove(ctx, id)
		cancel()
		switch {
		case err == nil:
			return
		case try == 10:
			w.t.Fatalf("deletion never ends: %v", err)
		}
		time.Sleep(time.Second << try)
	}
}

// insisted is the case in which the owner stays: the sidecar retries until it gets the object. Then there must be exactly one object.
func (s sidecar) insisted(w *world, kind string, others int) {
	w.t.Helper()
	for try := 0; ; try++ {
		if try == 1 {
			w.sim.ClearFaults()
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
		id, done, err := s.make(ctx)
		cancel()
		if done {
			w.sim.ClearFaults()
			if all := w.admin.IDs(kind); len(all) != others+1 || !slices.Contains(all, id) {
				w.t.Errorf("want one of the %s, %s, besides %d prepared, got %v", kind, id, others, all)
			}
			s.discard(w, id)
			return
		}
		if try == 10 {
			w.t.Fatalf("never made: %v", err)
		}
		time.Sleep(time.Second << min(try, 8))
	}
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
