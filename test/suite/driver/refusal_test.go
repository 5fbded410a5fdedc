package driver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRefusalsOfTheCloud(t *testing.T) {
	az1, _ := servers()
	for name, test := range map[string]struct {
		call func(ctx context.Context, d *instance) error
		code codes.Code
		text string
	}{
		"unknown zone": {func(ctx context.Context, d *instance) error {
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "moon"} })))
		}, codes.InvalidArgument, "moon"},
		"unknown type": {func(ctx context.Context, d *instance) error {
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"type": "gold"} })))
		}, codes.InvalidArgument, "gold"},
		"quota": {func(ctx context.Context, d *instance) error {
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				r.Parameters, r.CapacityRange.RequiredBytes = map[string]string{"type": "fast"}, 2000<<30
			})))
		}, codes.ResourceExhausted, "gigabytes_fast"},
		"no source": {func(ctx context.Context, d *instance) error {
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				fromVolume(az1)(r)
			})))
		}, codes.NotFound, az1},
		"no volume to attach": {func(ctx context.Context, d *instance) error {
			return outcome(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: az1, NodeId: az1, VolumeCapability: writer}))
		}, codes.NotFound, az1},
		"no server": {func(ctx context.Context, d *instance) error {
			v, err := d.CreateVolume(ctx, claim("a"))
			if err != nil {
				return err
			}
			_, err = d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: v.GetVolume().GetVolumeId(), NodeId: v.GetVolume().GetVolumeId(), VolumeCapability: writer})
			return err
		}, codes.NotFound, "server"},
		"a name that differs": {func(ctx context.Context, d *instance) error {
			if _, err := d.CreateVolume(ctx, claim("a")); err != nil {
				return err
			}
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 9 << 30 })))
		}, codes.AlreadyExists, ""},
		"sharing a plain type": {func(ctx context.Context, d *instance) error {
			return outcome(d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{shared}
			})))
		}, codes.InvalidArgument, "multiattach"},
	} {
		story(t, name, func(t *testing.T) {
			wantCode(t, test.call(asSidecar(t), startWith(t, simulated())), test.code, test.text)
		})
	}
}

func TestDeleteVolumeWithSnapshotsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		id := made(t, d)
		shot := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
		_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition, "snapshots")
		if _, there := listed(t, d)[id]; !there || !shots(t, d)[shot] {
			t.Errorf("want the volume and its snapshot, got %v and %v", listed(t, d), shots(t, d))
		}
		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: shot}))
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
	})
}

func TestListWithAnInvalidTokenIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		gone, _ := servers() // a UUID that nothing in Cinder has, as upstream's token of a volume that is gone
		for _, token := range []string{"x", gone, gone + ":moon", gone + ",soon", "../" + gone} {
			for name, list := range map[string]func() error{
				"ListVolumes": func() error {
					return outcome(d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{StartingToken: token}))
				},
				"ListSnapshots": func() error {
					return outcome(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{StartingToken: token}))
				},
				"ControllerListVolumeHealth": func() error {
					return outcome(d.ControllerListVolumeHealth(asSidecar(t), &csi.ControllerListVolumeHealthRequest{StartingToken: token}))
				},
			} {
				if err := list(); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "token") {
					t.Errorf("%s with %q: want Aborted, got %v", name, token, err)
				}
			}
		}
	})
}
