package driver_test

import (
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestExpandADetachedAndAnAttachedVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		grow := func(gib int64) {
			t.Helper()
			got := must[*csi.ControllerExpandVolumeResponse](t)(d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
				VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: gib << 30}, VolumeCapability: writer,
			}))
			if got.GetCapacityBytes() != gib<<30 || !got.GetNodeExpansionRequired() {
				t.Errorf("got %v", got)
			}
		}
		grow(2)
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		grow(3)
		grow(3)
		_, err := d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30, LimitBytes: 2 << 30}})
		wantCode(t, err, codes.OutOfRange, "3 GiB")
		_, err = d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 50}})
		wantCode(t, err, codes.ResourceExhausted, "quota")
		if got := must[*csi.ControllerGetVolumeResponse](t)(d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})); got.GetVolume().GetCapacityBytes() != 3<<30 {
			t.Errorf("got %v", got)
		}
	})
}

func TestControllerExpandVolumeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		fault openstacksim.Fault
		size  int64
		limit int64
		code  codes.Code
		text  string
	}{
		"a size between two GiB":      {size: 1<<30 + 1, limit: 1<<30 + 2, code: codes.OutOfRange, text: "Cinder creates volumes of whole GiB"},
		"above the quota":             {size: 1 << 50, code: codes.ResourceExhausted, text: "gigabytes quota"},
		"a backend that fails":        {fault: openstacksim.Fault{Operation: openstacksim.ExtendVolume}, size: 2 << 30, code: codes.Aborted, text: "failed to extend"},
		"an answer that is lost":      {fault: openstacksim.Fault{Path: "/volume/v3/*/volumes/*/action", After: true, Drop: true, Times: 1}, size: 2 << 30, code: codes.Unavailable},
		"a cloud that does not allow": {fault: openstacksim.Fault{Path: "/volume/v3/*/volumes/*/action", Status: 403}, size: 2 << 30, code: codes.PermissionDenied},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			d, ctx := startWith(t, sim), asSidecar(t)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
			if test.fault.Path != "" || test.fault.Operation != "" {
				sim.SetFault(test.fault)
			}
			_, err := d.ControllerExpandVolume(ctx, larger(id, test.size, test.limit))
			wantCode(t, err, test.code, test.text)
			if test.fault.Drop { // the retry finds it done
				must[*csi.ControllerExpandVolumeResponse](t)(d.ControllerExpandVolume(ctx, larger(id, test.size, test.limit)))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		az1, _ := servers()
		_, err := d.ControllerExpandVolume(ctx, larger(az1, 2<<30, 0))
		wantCode(t, err, codes.NotFound, az1)
		_, err = d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: az1})
		wantCode(t, err, codes.InvalidArgument, "capacity range")
	})
}

// csi-resizer asks the identity service and both others before it works.
func TestAllThreeServicesHaveTheExpansionCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		if !can(t, d, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME) {
			t.Error("the controller does not tell that it expands")
		}
		plugin := must[*csi.GetPluginCapabilitiesResponse](t)(d.GetPluginCapabilities(t.Context(), &csi.GetPluginCapabilitiesRequest{}))
		online := false
		for _, c := range plugin.GetCapabilities() {
			online = online || c.GetVolumeExpansion().GetType() == csi.PluginCapability_VolumeExpansion_ONLINE
		}
		node := must[*csi.NodeGetCapabilitiesResponse](t)(d.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{}))
		grows := false
		for _, c := range node.GetCapabilities() {
			grows = grows || c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_EXPAND_VOLUME
		}
		if !online || !grows {
			t.Errorf("online expansion of the plugin: %v, expansion of the node: %v", online, grows)
		}
	})
}
