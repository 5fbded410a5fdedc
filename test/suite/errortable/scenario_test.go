package errortable

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// scenario is one path through an RPC.
type scenario struct {
	name, rpc string
	prepare   func(w *world)
	// disturb is a fault of the cloud itself on this path.
	disturb openstacksim.Fault
	call    func(ctx context.Context, w *world) error
	// sidecar is the caller, if the RPC creates something: volumes or snapshots.
	sidecar func(w *world) sidecar
	makes   string
}

func provisioner(req func(w *world) *csi.CreateVolumeRequest) func(w *world) sidecar {
	return func(w *world) sidecar {
		return sidecar{
			make: func(ctx context.Context) (string, bool, error) {
				answer, err := w.CreateVolume(ctx, req(w))
				return answer.GetVolume().GetVolumeId(), err == nil, err
			},
			remove: func(ctx context.Context, id string) error {
				return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
			},
		}
	}
}

// snapshotter is external-snapshotter. It never replaces the first ID that it receives (updateSnapshotContentStatus of
// external-snapshotter 8.7), so that ID must name a snapshot that is ready.
func snapshotter(req func(w *world) *csi.CreateSnapshotRequest) func(w *world) sidecar {
	return func(w *world) sidecar {
		return sidecar{
			make: func(ctx context.Context) (string, bool, error) {
				answer, err := w.CreateSnapshot(ctx, req(w))
				if err == nil && !answer.GetSnapshot().GetReadyToUse() {
					w.t.Errorf("what was returned is not ready: %v", answer)
				}
				return answer.GetSnapshot().GetSnapshotId(), err == nil, err
			},
			remove: func(ctx context.Context, id string) error {
				return csitest.Outcome(w.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id}))
			},
		}
	}
}

// create is a path through CreateVolume.
func create(name string, prepare func(w *world), disturb openstacksim.Fault, req func(w *world) *csi.CreateVolumeRequest) scenario {
	asks := provisioner(req)
	return scenario{name: name, rpc: "CreateVolume", prepare: prepare, disturb: disturb, sidecar: asks, makes: "volumes", call: func(ctx context.Context, w *world) error {
		_, _, err := asks(w).make(ctx)
		return err
	}}
}

// createSnapshot is a path through CreateSnapshot.
func createSnapshot(name string, prepare func(w *world), disturb openstacksim.Fault, req func(w *world) *csi.CreateSnapshotRequest) scenario {
	asks := snapshotter(req)
	return scenario{name: name, rpc: "CreateSnapshot", prepare: prepare, disturb: disturb, sidecar: asks, makes: "snapshots", call: func(ctx context.Context, w *world) error {
		_, _, err := asks(w).make(ctx)
		return err
	}}
}

func nothing(*world) {}

func just(req *csi.CreateVolumeRequest) func(*world) *csi.CreateVolumeRequest {
	return func(*world) *csi.CreateVolumeRequest { return req }
}

// begun makes a call that ends before the cloud has done the work.
func begun(w *world, after time.Duration, call func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), after)
	defer cancel()
	if err := call(ctx); err == nil {
		w.t.Fatal("the prepared call ended too soon")
	}
	cancel()
	synctest.Wait() // the driver has noticed
}

var noFault openstacksim.Fault

// The paths through the RPCs that call Cinder or Nova.
var scenarios = []scenario{
	create("blank", nothing, noFault, just(csitest.Claim("pvc", csitest.Wanted("az2", "az1")))),
	create("a zone without room, then another", nothing, openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true, Times: 1}, just(csitest.Claim("pvc", csitest.Wanted("az2", "az1")))),
	create("no room anywhere", nothing, openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true}, just(csitest.Claim("pvc"))),
	create("no room in any zone that will do", nothing, openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true}, just(csitest.Claim("pvc", csitest.Wanted("az2", "az1")))),
	create("the backend gives up", nothing, openstacksim.Fault{Operation: openstacksim.CreateVolume}, just(csitest.Claim("pvc"))),
	create("Cinder chooses another zone", func(w *world) { w.sim.SetZoneFallback(true) }, noFault, just(csitest.Claim("pvc", csitest.Wanted("az9")))),
	create("begun before", func(w *world) {
		begun(w, 3*time.Second, func(ctx context.Context) error { _, err := w.CreateVolume(ctx, csitest.Claim("pvc")); return err })
	}, noFault, just(csitest.Claim("pvc"))),
	create("clone", (*world).prepared, noFault, func(w *world) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc", csitest.FromVolume(w.volume))
	}),
	create("from a snapshot", func(w *world) { w.prepared(); w.snapshotMade() }, noFault, func(w *world) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc", csitest.FromSnapshot(w.snapshot))
	}),
	create("from a backup", func(w *world) { w.prepared(); w.backupMade() }, noFault, func(w *world) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc", csitest.FromSnapshot(w.snapshot))
	}),
	create("from a backup in Ceph", func(w *world) { w.sim.SetCephBackups(true); w.prepared(); w.backupMade() }, noFault, func(w *world) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc", csitest.FromSnapshot(w.snapshot))
	}),
	create("for several servers, of a type for one", nothing, noFault, just(csitest.Claim("pvc", csitest.As(csitest.Shared())))),
	create("of a size that cannot be", nothing, noFault, just(csitest.Claim("pvc", func(r *csi.CreateVolumeRequest) {
		r.CapacityRange = &csi.CapacityRange{RequiredBytes: gib + 1, LimitBytes: gib + 2}
	}))),
	create("of another's name", func(w *world) { w.prepared() }, noFault, just(csitest.Claim("prepared", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 * gib }))),
	create("from an id that is no UUID", nothing, noFault, just(csitest.Claim("pvc", csitest.FromSnapshot("no-uuid")))),

	remove("free", (*world).prepared, noFault),
	remove("just made", (*world).justMade, noFault),
	remove("attached", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault),
	remove("with a snapshot", func(w *world) { w.prepared(); w.snapshotMade() }, noFault),
	remove("the backend gives up", (*world).prepared, openstacksim.Fault{Operation: openstacksim.DeleteVolume, Times: 1}),
	remove("begun before", func(w *world) {
		w.prepared()
		begun(w, 3*time.Second, func(ctx context.Context) error {
			return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume}))
		})
	}, noFault),

	attach("free", (*world).prepared, noFault),
	attach("just made", (*world).justMade, noFault),
	attach("attached already", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault),
	attach("attached elsewhere", func(w *world) { w.prepared(); w.attached(w.az2) }, noFault),
	attach("attached elsewhere too", func(w *world) {
		w.volume = w.made(csitest.Claim("prepared", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"type": "multiattach"} }))
		w.attached(w.az2)
	}, noFault),
	attach("the host gives up", (*world).prepared, openstacksim.Fault{Operation: openstacksim.Attach}),
	attach("begun before", func(w *world) {
		w.prepared()
		begun(w, 10*time.Second, func(ctx context.Context) error { return w.publish(ctx, w.az1) })
	}, noFault),
	attach("to no server", func(w *world) { w.prepared(); w.sim.RemoveServer(w.az1, false) }, noFault),

	detach("attached", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault),
	detach("just attached", func(w *world) { w.justMade(); w.justAttached(w.az1) }, noFault),
	detach("not attached", (*world).prepared, noFault),
	detach("the host keeps it", func(w *world) { w.prepared(); w.attached(w.az1) }, openstacksim.Fault{Operation: openstacksim.Detach, Times: 1}),
	detach("from a server that is gone", func(w *world) { w.prepared(); w.attached(w.az1); w.sim.RemoveServer(w.az1, true); w.lost = true }, noFault),

	expand("free", (*world).prepared, noFault, 2*gib),
	expand("attached", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault, 2*gib),
	expand("beyond the quota", (*world).prepared, noFault, 1<<50),
	expand("beyond its limit", (*world).prepared, noFault, 0),
	expand("the backend gives up", (*world).prepared, openstacksim.Fault{Operation: openstacksim.ExtendVolume, Times: 1}, 2*gib),

	modify("type and metadata", (*world).prepared, noFault, map[string]string{"type": "multiattach", "metadata.team": "a"}),
	modify("type and removed metadata", func(w *world) {
		w.prepared()
		w.do("prepare metadata", func(ctx context.Context) error {
			return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: w.volume, MutableParameters: map[string]string{"metadata.team": "a"}}))
		})
	}, noFault, map[string]string{"type": "multiattach", "metadata.team": ""}),
	modify("the backend does not move it", (*world).prepared, openstacksim.Fault{Operation: openstacksim.RetypeVolume}, map[string]string{"type": "fast", "policy": "on-demand"}),
	modify("attached", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault, map[string]string{"type": "multiattach"}),

	createSnapshot("free", (*world).prepared, noFault, snapshotOfPrepared),
	createSnapshot("attached", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault, snapshotOfPrepared),
	createSnapshot("the backend gives up", (*world).prepared, openstacksim.Fault{Operation: openstacksim.CreateSnapshot, Times: 1}, snapshotOfPrepared),
	createSnapshot("the backend gave up", func(w *world) {
		w.prepared()
		defer w.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateSnapshot})()
		begun(w, 3*time.Second, func(ctx context.Context) error { _, err := w.CreateSnapshot(ctx, snapshotOfPrepared(w)); return err })
		time.Sleep(time.Minute)
	}, noFault, snapshotOfPrepared),
	createSnapshot("begun before", func(w *world) {
		w.prepared()
		begun(w, 3*time.Second, func(ctx context.Context) error { _, err := w.CreateSnapshot(ctx, snapshotOfPrepared(w)); return err })
	}, noFault, snapshotOfPrepared),
	backup("of a free volume", (*world).prepared, noFault),
	backup("of an attached volume", func(w *world) { w.prepared(); w.attached(w.az1) }, noFault),
	backup("the store gives up", (*world).prepared, openstacksim.Fault{Operation: openstacksim.CreateBackup, Times: 1}),
	createSnapshot("of another's name", func(w *world) { w.prepared(); w.snapshotMade() }, noFault, func(w *world) *csi.CreateSnapshotRequest {
		return &csi.CreateSnapshotRequest{Name: "prepared", SourceVolumeId: w.az1}
	}),

	deleteSnapshot("a snapshot", func(w *world) { w.prepared(); w.snapshotMade() }, noFault),
	deleteSnapshot("a backup", func(w *world) { w.prepared(); w.backupMade() }, noFault),
	deleteSnapshot("the backend gives up", func(w *world) { w.prepared(); w.snapshotMade() }, openstacksim.Fault{Operation: openstacksim.DeleteSnapshot, Times: 1}),
	deleteSnapshot("the store gives up", func(w *world) { w.prepared(); w.backupMade() }, openstacksim.Fault{Operation: openstacksim.DeleteBackup, Times: 1}),

	ask("ListVolumes", "all", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListVolumes(ctx, &csi.ListVolumesRequest{}))
	}),
	ask("ListVolumes", "with a token that is none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: "none"}))
	}),
	ask("ListVolumes", "of less than nothing", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: -1}))
	}),
	ask("ListSnapshots", "all", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{}))
	}),
	ask("ListSnapshots", "one", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: w.snapshot}))
	}),
	ask("ListSnapshots", "with a token that is none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{StartingToken: "none"}))
	}),
	ask("ListSnapshots", "of less than nothing", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{MaxEntries: -1}))
	}),
	ask("ControllerGetVolume", "one", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: w.volume}))
	}),
	ask("ControllerGetVolume", "none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{}))
	}),
	ask("ValidateVolumeCapabilities", "one", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: w.volume, VolumeCapabilities: []*csi.VolumeCapability{csitest.Mounted("")}}))
	}),
	ask("ValidateVolumeCapabilities", "none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: w.volume}))
	}),
	ask("GetCapacity", "of a type in a zone", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.GetCapacity(ctx, &csi.GetCapacityRequest{
			Parameters: map[string]string{"type": "fast"}, AccessibleTopology: &csi.Topology{Segments: map[string]string{zoneKey: "az1"}},
		}))
	}),
	ask("GetCapacity", "of an unknown type", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.GetCapacity(ctx, &csi.GetCapacityRequest{Parameters: map[string]string{"type": "none"}}))
	}),
	ask("ControllerGetVolumeHealth", "one", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: w.volume}))
	}),
	ask("ControllerGetVolumeHealth", "none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{}))
	}),
	ask("ControllerListVolumeHealth", "all", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{}))
	}),
	ask("ControllerListVolumeHealth", "with a token that is none", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{StartingToken: "none"}))
	}),
	ask("ControllerListVolumeHealth", "of less than nothing", func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{MaxEntries: -1}))
	}),
}

func snapshotOfPrepared(w *world) *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: w.volume}
}

func backupOfPrepared(w *world) *csi.CreateSnapshotRequest {
	req := snapshotOfPrepared(w)
	req.Parameters = map[string]string{"type": "backup"}
	return req
}

// backup is a path through CreateSnapshot with a class whose snapshots are backups.
func backup(name string, prepare func(w *world), disturb openstacksim.Fault) scenario {
	s := createSnapshot(name, prepare, disturb, backupOfPrepared)
	s.makes = "backups"
	return s
}

func remove(name string, prepare func(w *world), disturb openstacksim.Fault) scenario {
	return scenario{name: name, rpc: "DeleteVolume", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume}))
	}}
}

func attach(name string, prepare func(w *world), disturb openstacksim.Fault) scenario {
	return scenario{name: name, rpc: "ControllerPublishVolume", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return w.publish(ctx, w.az1)
	}}
}

func detach(name string, prepare func(w *world), disturb openstacksim.Fault) scenario {
	return scenario{name: name, rpc: "ControllerUnpublishVolume", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return w.unpublish(ctx, w.az1)
	}}
}

// expand expands a volume. If to is 0, the limit is below the present size.
func expand(name string, prepare func(w *world), disturb openstacksim.Fault, to int64) scenario {
	size := &csi.CapacityRange{RequiredBytes: to}
	if to == 0 {
		size = &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 2}
	}
	return scenario{name: name, rpc: "ControllerExpandVolume", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: w.volume, CapacityRange: size, VolumeCapability: csitest.Mounted("")}))
	}}
}

func modify(name string, prepare func(w *world), disturb openstacksim.Fault, parameters map[string]string) scenario {
	return scenario{name: name, rpc: "ControllerModifyVolume", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: w.volume, MutableParameters: parameters}))
	}}
}

func deleteSnapshot(name string, prepare func(w *world), disturb openstacksim.Fault) scenario {
	return scenario{name: name, rpc: "DeleteSnapshot", prepare: prepare, disturb: disturb, call: func(ctx context.Context, w *world) error {
		return csitest.Outcome(w.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: w.snapshot}))
	}}
}

// ask is an RPC that changes nothing, on a cloud with an attached volume and its snapshot.
func ask(rpc, name string, call func(ctx context.Context, w *world) error) scenario {
	return scenario{name: name, rpc: rpc, call: call, prepare: func(w *world) {
		w.prepared()
		w.snapshotMade()
		w.attached(w.az1)
	}}
}
