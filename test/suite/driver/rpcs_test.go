package driver_test

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// objects are what the RPCs of controllerRPCs name.
type objects struct {
	volume   string // attached to nothing, without a snapshot
	attached string // at the first server of az1
	source   string // has the snapshot and the backup
	snapshot string
	backup   string
	other    string // what a test adds
	az1, az2 string
}

func newObjects(t *testing.T, d *instance) objects {
	t.Helper()
	volume := func(name string) string {
		return must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(name))).GetVolume().GetVolumeId()
	}
	o := objects{volume: volume("pvc-volume"), attached: volume("pvc-attached"), source: volume("pvc-source")}
	o.az1, o.az2 = servers()
	testenv.Must(t, publish(t, d, o.attached, o.az1))
	o.snapshot = ready(t, d, snapshotRequest("snapshot-of-source", o.source)).GetSnapshotId()
	o.backup = newBackup(t, d, "backup-of-source", o.source)
	return o
}

// controllerRPC is one use of an RPC of the controller. The table is the basis of the tests of a kind: what holds for one RPC must hold for all.
type controllerRPC struct {
	name string
	call func(ctx context.Context, d *instance, o objects) error
	// operation is the work of the cloud that the RPC waits for; empty for an RPC that only reads.
	operation openstacksim.Operation
}

func outcome[T any](_ T, err error) error { return err }

var controllerRPCs = []controllerRPC{
	{"CreateVolume", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new")))
	}, openstacksim.CreateVolume},
	{"CreateVolume from a snapshot", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new", fromSnapshot(o.snapshot))))
	}, openstacksim.CreateVolume},
	{"CreateVolume from a volume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new", fromVolume(o.volume))))
	}, openstacksim.CreateVolume},
	{"CreateVolume from a backup", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateVolume(ctx, claim("pvc-new", fromSnapshot(o.backup))))
	}, openstacksim.RestoreBackup},
	{"DeleteVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: o.volume}))
	}, openstacksim.DeleteVolume},
	{"ControllerPublishVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: o.volume, NodeId: o.az1, VolumeCapability: writer}))
	}, openstacksim.Attach},
	{"ControllerUnpublishVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: o.attached, NodeId: o.az1}))
	}, openstacksim.Detach},
	{"ControllerUnpublishVolume from every node", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: o.attached}))
	}, openstacksim.Detach},
	{"ControllerExpandVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerExpandVolume(ctx, larger(o.volume, 2<<30, 0)))
	}, openstacksim.ExtendVolume},
	{"ControllerModifyVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerModifyVolume(ctx, changed(o.volume, map[string]string{"type": "multiattach"})))
	}, openstacksim.RetypeVolume},
	{"CreateSnapshot", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateSnapshot(ctx, snapshotRequest("snapshot-new", o.volume)))
	}, openstacksim.CreateSnapshot},
	{"CreateSnapshot as a backup", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.CreateSnapshot(ctx, archive("backup-new", o.volume)))
	}, openstacksim.CreateBackup},
	{"DeleteSnapshot", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: o.snapshot}))
	}, openstacksim.DeleteSnapshot},
	{"DeleteSnapshot of a backup", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: o.backup}))
	}, openstacksim.DeleteBackup},
	{"ControllerGetVolume", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: o.volume}))
	}, ""},
	{"ValidateVolumeCapabilities", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: o.volume, VolumeCapabilities: []*csi.VolumeCapability{writer}}))
	}, ""},
	{"ListVolumes", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.ListVolumes(ctx, &csi.ListVolumesRequest{}))
	}, ""},
	{"ListSnapshots", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{}))
	}, ""},
	{"GetSnapshot", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: o.snapshot}))
	}, ""},
	{"GetCapacity", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.GetCapacity(ctx, &csi.GetCapacityRequest{}))
	}, ""},
	{"ControllerGetVolumeHealth", func(ctx context.Context, d *instance, o objects) error {
		return outcome(d.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: o.attached}))
	}, ""},
	{"ControllerListVolumeHealth", func(ctx context.Context, d *instance, _ objects) error {
		return outcome(d.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{}))
	}, ""},
}
