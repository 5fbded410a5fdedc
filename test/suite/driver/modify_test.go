package driver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// external-resizer takes InvalidArgument for a class that the volume can never have, and asks on after Aborted, Unavailable and
// DeadlineExceeded.
func TestControllerModifyVolumeRefuses(t *testing.T) {
	const action, metadata = "/volume/v3/*/volumes/*/action", "/volume/v3/*/volumes/*/metadata"
	for name, test := range map[string]struct {
		fault      openstacksim.Fault
		parameters map[string]string
		code       codes.Code
		text       string
		retry      bool // finds it done
	}{
		"an unknown parameter":            {parameters: map[string]string{"tpye": "fast"}, code: codes.InvalidArgument, text: "did you mean type?"},
		"an unknown type":                 {parameters: map[string]string{"type": "multiatach"}, code: codes.InvalidArgument, text: "did you mean multiattach?"},
		"a move that is not allowed":      {parameters: map[string]string{"type": "fast"}, code: codes.InvalidArgument, text: "policy: on-demand"},
		"a move that the backend refuses": {fault: openstacksim.Fault{Operation: openstacksim.RetypeVolume}, parameters: map[string]string{"type": "fast", "policy": "on-demand"}, code: codes.FailedPrecondition, text: "On Ceph, it cannot encrypt or decrypt one"},
		"an answer that is lost":          {fault: openstacksim.Fault{Path: action, After: true, Drop: true, Times: 1}, parameters: map[string]string{"type": "multiattach"}, code: codes.Unavailable, retry: true},
		"a cloud that does not allow":     {fault: openstacksim.Fault{Path: action, Status: 403}, parameters: map[string]string{"type": "multiattach"}, code: codes.PermissionDenied},
		"types that are not shown":        {fault: openstacksim.Fault{Path: "/volume/v3/*/types", Status: 403}, parameters: map[string]string{"type": "multiattach"}, code: codes.PermissionDenied},
		"metadata after the type": {
			fault:      openstacksim.Fault{Path: metadata, Status: 403, Times: 1},
			parameters: map[string]string{"type": "multiattach", "metadata.team": "a"}, code: codes.Unavailable, retry: true,
		},
		"metadata alone": {fault: openstacksim.Fault{Path: metadata, Status: 403}, parameters: map[string]string{"metadata.team": "a"}, code: codes.PermissionDenied},
		"longer than the caller waits": {
			fault:      openstacksim.Fault{Operation: openstacksim.RetypeVolume, Slow: true, Delay: 200 * time.Second},
			parameters: map[string]string{"type": "multiattach"}, code: codes.DeadlineExceeded, retry: true,
		},
	} {
		story(t, name, func(t *testing.T) {
			sim, d := started(t)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
			if test.fault.Path != "" || test.fault.Operation != "" {
				sim.SetFault(test.fault)
			}
			ctx := asSidecar(t)
			_, err := d.ControllerModifyVolume(ctx, changed(id, test.parameters))
			wantCode(t, err, test.code, test.text)
			if test.retry {
				synctest.Wait() // the server's side ends too
				must[*csi.ControllerModifyVolumeResponse](t)(d.ControllerModifyVolume(asSidecar(t), changed(id, test.parameters)))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		az1, _ := servers()
		_, err := d.ControllerModifyVolume(asSidecar(t), changed(az1, nil))
		wantCode(t, err, codes.NotFound, az1)
	})
}

func TestCreateVolumeWithMutableParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		made := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) {
			r.Parameters, r.MutableParameters = map[string]string{"type": "standard"}, map[string]string{"type": "fast", "metadata.team": "a"}
		})))
		id := made.GetVolume().GetVolumeId()
		for _, parameters := range []map[string]string{
			{"type": "fast", "metadata.team": "a"}, // as it is
			{"type": "standard", "policy": "on-demand"},
			{"metadata.team": "b"},
		} {
			must[*csi.ControllerModifyVolumeResponse](t)(d.ControllerModifyVolume(asSidecar(t), changed(id, parameters)))
		}
		confirmed := must[*csi.ValidateVolumeCapabilitiesResponse](t)(d.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: id, VolumeCapabilities: []*csi.VolumeCapability{writer}, MutableParameters: map[string]string{"type": "standard", "metadata.team": "b"},
		}))
		if confirmed.GetConfirmed() == nil {
			t.Errorf("not what it was made to be: %v", confirmed)
		}
	})
}
