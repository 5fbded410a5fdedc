package partial

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// scenario is one path through an RPC.
type scenario struct {
	rpc, name string
	prepare   func(w *world)
	disturb   openstacksim.Fault // of an operation of the cloud: the path that begins with a failed operation
	call      func(ctx context.Context, w *world, i int) error
}

func (s scenario) String() string {
	if s.name == "" {
		return s.rpc
	}
	return s.rpc + " " + s.name
}

var noFault openstacksim.Fault

var scenarios = []scenario{
	{"CreateVolume", "", func(*world) {}, noFault, func(ctx context.Context, w *world, i int) error { return w.create(ctx, i) }},
	{"CreateVolume", "by type name", func(*world) {}, noFault, func(ctx context.Context, w *world, i int) error {
		return w.create(ctx, i, func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"type": "fast"} })
	}},
	{"CreateVolume", "from a volume", (*world).made, noFault, func(ctx context.Context, w *world, i int) error {
		return w.create(ctx, i, csitest.FromVolume(w.volumes[i]))
	}},
	{"CreateVolume", "from a snapshot", (*world).snapshotsMade, noFault, fromSnapshot},
	{"CreateVolume", "from a backup", (*world).backupsMade, noFault, fromSnapshot},
	{"CreateVolume", "from a backup in Ceph", func(w *world) { w.sim.SetCephBackups(true); w.backupsMade() }, noFault, fromSnapshot},
	{
		"CreateVolume", "when the backend fails", func(*world) {},
		openstacksim.Fault{Operation: openstacksim.CreateVolume},
		func(ctx context.Context, w *world, i int) error { return w.create(ctx, i) },
	},

	{"DeleteVolume", "", (*world).made, noFault, deleteVolume},
	{"DeleteVolume", "with a snapshot", (*world).snapshotsMade, noFault, deleteVolume},

	{"ControllerPublishVolume", "", (*world).made, noFault, func(ctx context.Context, w *world, i int) error { return w.publish(ctx, i, csitest.Mounted("")) }},
	{
		"ControllerPublishVolume", "of a multiattach volume", (*world).madeMultiattach, noFault,
		func(ctx context.Context, w *world, i int) error { return w.publish(ctx, i, csitest.Shared()) },
	},
	{"ControllerPublishVolume", "already done", (*world).attached, noFault, func(ctx context.Context, w *world, i int) error { return w.publish(ctx, i, csitest.Mounted("")) }},

	{"ControllerUnpublishVolume", "", (*world).attached, noFault, unpublish},
	{"ControllerUnpublishVolume", "already done", (*world).made, noFault, unpublish},
	{"ControllerUnpublishVolume", "from a deleted server", func(w *world) { w.attached(); w.sim.RemoveServer(w.az1, true) }, noFault, unpublish},

	{"ControllerExpandVolume", "", (*world).made, noFault, expand},
	{"ControllerExpandVolume", "in use", (*world).attached, noFault, expand},

	{"ControllerModifyVolume", "", (*world).made, noFault, modify},
	{"ControllerModifyVolume", "of a volume with a snapshot", (*world).snapshotsMade, noFault, modify},
	{"ControllerModifyVolume", "removes metadata", (*world).labelled, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{VolumeId: w.volumes[i], MutableParameters: map[string]string{"metadata.team": ""}}))
	}},

	{"CreateSnapshot", "", (*world).made, noFault, func(ctx context.Context, w *world, i int) error { return w.snapshot(ctx, i, nil) }},
	{"CreateSnapshot", "in use", (*world).attached, noFault, func(ctx context.Context, w *world, i int) error { return w.snapshot(ctx, i, nil) }},
	{"CreateSnapshot", "as a backup", (*world).made, noFault, func(ctx context.Context, w *world, i int) error {
		return w.snapshot(ctx, i, map[string]string{"type": "backup"})
	}},
	{"CreateSnapshot", "as a backup in a zone", (*world).made, noFault, func(ctx context.Context, w *world, i int) error {
		return w.snapshot(ctx, i, map[string]string{"type": "backup", "availability": "az1"})
	}},
	{"CreateSnapshot", "as an incremental backup", (*world).backupsMade, noFault, func(ctx context.Context, w *world, i int) error {
		return w.snapshot(ctx, i, map[string]string{"type": "backup", "incremental": "true"})
	}},

	{"DeleteSnapshot", "", (*world).snapshotsMade, noFault, deleteSnapshot},
	{"DeleteSnapshot", "of a backup", (*world).backupsMade, noFault, deleteSnapshot},

	{"ListVolumes", "", (*world).attached, noFault, func(ctx context.Context, w *world, _ int) error {
		return csitest.Outcome(w.ListVolumes(ctx, &csi.ListVolumesRequest{}))
	}},
	{"ListSnapshots", "", (*world).snapshotsMade, noFault, func(ctx context.Context, w *world, _ int) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{}))
	}},
	{"ListSnapshots", "of one", (*world).snapshotsMade, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: w.objects[i]}))
	}},
	{"ListSnapshots", "of one volume", (*world).snapshotsMade, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: w.volumes[i]}))
	}},
	{"ControllerGetVolume", "", (*world).attached, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: w.volumes[i]}))
	}},
	{"ValidateVolumeCapabilities", "", (*world).made, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: w.volumes[i], VolumeCapabilities: []*csi.VolumeCapability{csitest.Mounted("")},
		}))
	}},
	{"GetCapacity", "", func(*world) {}, noFault, func(ctx context.Context, w *world, _ int) error {
		return csitest.Outcome(w.GetCapacity(ctx, &csi.GetCapacityRequest{AccessibleTopology: &csi.Topology{Segments: map[string]string{zoneKey: "az1"}}}))
	}},
	{"GetCapacity", "of a type", func(*world) {}, noFault, func(ctx context.Context, w *world, _ int) error {
		return csitest.Outcome(w.GetCapacity(ctx, &csi.GetCapacityRequest{
			Parameters: map[string]string{"type": "fast"}, AccessibleTopology: &csi.Topology{Segments: map[string]string{zoneKey: "az1"}},
		}))
	}},
	{"ControllerGetVolumeHealth", "", (*world).attached, noFault, func(ctx context.Context, w *world, i int) error {
		return csitest.Outcome(w.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: w.volumes[i]}))
	}},
	{"ControllerListVolumeHealth", "", (*world).attached, noFault, func(ctx context.Context, w *world, _ int) error {
		return csitest.Outcome(w.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{}))
	}},
}

// prepared prepares the scenario on the healthy cloud, and waits until the driver has no cached state.
func (s scenario) prepared(w *world) {
	s.prepare(w)
	time.Sleep(2 * time.Minute)
	if s.disturb.Operation != "" {
		w.sim.SetFault(s.disturb)
	}
	w.breaker.begin()
}

func (w *world) create(ctx context.Context, i int, change ...func(*csi.CreateVolumeRequest)) error {
	return csitest.Outcome(w.CreateVolume(ctx, csitest.Claim(volumeName(i), append(change, csitest.Wanted("az1"))...)))
}

func fromSnapshot(ctx context.Context, w *world, i int) error {
	return w.create(ctx, i, csitest.FromSnapshot(w.objects[i]))
}

func (w *world) snapshot(ctx context.Context, i int, parameters map[string]string) error {
	return csitest.Outcome(w.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: volumeName(i), SourceVolumeId: w.volumes[i], Parameters: parameters}))
}

func deleteVolume(ctx context.Context, w *world, i int) error {
	return csitest.Outcome(w.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volumes[i]}))
}

func unpublish(ctx context.Context, w *world, i int) error {
	return csitest.Outcome(w.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: w.volumes[i], NodeId: w.az1}))
}

func expand(ctx context.Context, w *world, i int) error {
	return csitest.Outcome(w.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: w.volumes[i], CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: csitest.Mounted(""),
	}))
}

func modify(ctx context.Context, w *world, i int) error {
	return csitest.Outcome(w.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: w.volumes[i], MutableParameters: map[string]string{"type": "multiattach", "metadata.team": "a"},
	}))
}

func deleteSnapshot(ctx context.Context, w *world, i int) error {
	return csitest.Outcome(w.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: w.objects[i]}))
}
