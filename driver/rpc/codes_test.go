package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// nonFinal are the codes after which external-provisioner, external-attacher, external-snapshotter and kubelet retry (isFinalError in
// each).
var nonFinal = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}

// forgetting are the RPCs whose callers forget the object, the attachment or the staging after a final code. The list is from the sources
// of the callers, not from the table under test.
var forgetting = []string{
	"CreateVolume",                                // isFinalError in external-provisioner
	"CreateSnapshot", "CreateVolumeGroupSnapshot", // isFinalError in external-snapshotter
	"ControllerPublishVolume",                          // isFinalError in external-attacher
	"ControllerExpandVolume", "ControllerModifyVolume", // isFinalError in external-resizer
	"NodeStageVolume", // IsOperationFinishedError in kubelet
}

// every RPC of the CSI specification 1.13 that this driver may ever serve.
var everyMethod = []string{
	"GetPluginInfo", "GetPluginCapabilities", "Probe",
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "ValidateVolumeCapabilities", "ListVolumes",
	"ControllerListVolumeHealth", "ControllerGetVolumeHealth", "GetCapacity", "ControllerGetCapabilities", "CreateSnapshot",
	"DeleteSnapshot", "ListSnapshots", "GetSnapshot", "ControllerExpandVolume", "ControllerGetVolume", "ControllerModifyVolume",
	"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeGetVolumeStats", "NodeExpandVolume",
	"NodeGetCapabilities", "NodeGetInfo",
}

func TestEveryKindHasACode(t *testing.T) {
	for kind := range volume.KindCount {
		if _, has := codesByKind[kind]; !has {
			t.Errorf("kind %s has no code", kind)
		}
	}
	if len(codesByKind) != int(volume.KindCount) {
		t.Errorf("want %d kinds with a code, got %d", volume.KindCount, len(codesByKind))
	}
}

func TestEndsAtFinalCodeHasOnlyRPCs(t *testing.T) {
	for method := range endsAtFinalCode {
		if !slices.Contains(everyMethod, method) {
			t.Errorf("%s is not an RPC", method)
		}
	}
}

func TestNoRPCEndsAtAFinalCodeAfterAWrite(t *testing.T) {
	for _, method := range everyMethod {
		for kind := range volume.KindCount {
			plain, after := codeOf(method, volume.Errorf(kind, "x")), codeOf(method, volume.Errorf(kind, "x").AfterWrite())
			switch {
			case plain == codes.OK || after == codes.OK:
				t.Errorf("%s, %s: the code of an error is OK", method, kind)
			case slices.Contains(forgetting, method) && !slices.Contains(nonFinal, after):
				t.Errorf("%s, %s after a write: %s is final", method, kind, after)
			case !slices.Contains(forgetting, method) && plain != after:
				t.Errorf("%s, %s: %s before a write and %s after it", method, kind, plain, after)
			}
		}
	}
}

// Package idempotent cannot import this one, so it has its own list of the kinds after which a sidecar retries.
func TestAnErrorIsFinalWhereItsCodeIs(t *testing.T) {
	for kind := range volume.KindCount {
		for _, err := range []error{volume.Errorf(kind, "x"), volume.Errorf(kind, "x").AfterWrite()} {
			code := codeOf("CreateVolume", err)
			if got, want := idempotent.Final(err), !slices.Contains(nonFinal, code); got != want {
				t.Errorf("%s (written: %t), code %s: want final %t, got %t", kind, volume.MayHaveWritten(err), code, want, got)
			}
		}
	}
}

func TestCodesOfTheSpecification(t *testing.T) {
	for _, test := range []struct {
		method string
		kind   volume.Kind
		want   codes.Code
	}{
		{"CreateVolume", volume.Incompatible, codes.AlreadyExists},
		{"CreateVolume", volume.Exhausted, codes.ResourceExhausted},
		{"CreateVolume", volume.OutOfRange, codes.OutOfRange},
		{"CreateVolume", volume.Busy, codes.Aborted},
		{"DeleteVolume", volume.Conflict, codes.FailedPrecondition},
		{"ControllerPublishVolume", volume.Conflict, codes.FailedPrecondition},
		{"ControllerPublishVolume", volume.Exhausted, codes.ResourceExhausted},
		{"ControllerPublishVolume", volume.NotFound, codes.NotFound},
		{"ListVolumes", volume.Busy, codes.Aborted},
		{"NodeStageVolume", volume.DataLoss, codes.FailedPrecondition},
		{"NodeStageVolume", volume.Incompatible, codes.AlreadyExists},
	} {
		if got := codeOf(test.method, volume.Errorf(test.kind, "x")); got != test.want {
			t.Errorf("%s, %s: want %s, got %s", test.method, test.kind, test.want, got)
		}
	}
}

func TestErrorsReachTheCallerAsStatus(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want error
	}{
		"domain":          {volume.Errorf(volume.NotFound, "no volume").Op("attach"), status.Error(codes.NotFound, "attach: no volume [request.missing]")},
		"context":         {context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "context deadline exceeded [request.deadline]")},
		"canceled":        {context.Canceled, status.Error(codes.Canceled, "context canceled [request.canceled]")},
		"unforeseen":      {errors.New("hm"), status.Error(codes.Internal, "hm [driver.defect]")},
		"not implemented": {status.Error(codes.Unimplemented, "no"), status.Error(codes.Unimplemented, "no")},
		"wrapped":         {volume.AfterWrite(volume.Errorf(volume.Failed, "x")), status.Error(codes.Aborted, "x")},
	} {
		_, err := Codes("cinder.csi.openstack.org")(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/CreateVolume"}, func(context.Context, any) (any, error) {
			return nil, test.err
		})
		if status.Code(err) != status.Code(test.want) || err.Error() != test.want.Error() {
			t.Errorf("%s: want %v, got %v", name, test.want, err)
		}
	}
}

// An event has the message alone, and a program the details.
func TestAnErrorReachesTheCallerWithItsCause(t *testing.T) {
	reserved := volume.Errorf(volume.Conflict, "volume v is reserved").Cause(cause.AttachReserved).Request("req-1")
	for name, test := range map[string]struct {
		err     error
		message string
		details map[string]string
	}{
		"with a request":     {reserved.Op("attach"), "attach: volume v is reserved (request req-1) [attach.reserved]", map[string]string{"request": "req-1"}},
		"of the inner error": {fmt.Errorf("twice: %w", volume.AfterWrite(reserved)), "twice: attach: volume v is reserved (request req-1) [attach.reserved]", map[string]string{"request": ""}},
		"of the outer error": {volume.Errorf(volume.Conflict, "no: %w", reserved).Cause(cause.AttachLeftover), "no: attach: volume v is reserved (request req-1) [attach.leftover]", nil},
		"usual of its kind":  {volume.Errorf(volume.Busy, "later"), "later [volume.busy]", map[string]string{"kind": "busy", "passes": "true", "who": "nobody"}},
	} {
		_, err := Codes("west.example.com")(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/ControllerPublishVolume"}, func(context.Context, any) (any, error) {
			return nil, test.err
		})
		s := status.Convert(err)
		if s.Message() != test.message {
			t.Errorf("%s: message %q", name, s.Message())
		}
		id := cause.In(s.Message())
		info, ok := s.Details()[0].(*errdetails.ErrorInfo)
		if !ok || cause.ID(info.GetReason()) != id || causeOf(err) != string(id) || info.GetDomain() != "west.example.com" {
			t.Errorf("%s: details %v, cause %s", name, s.Details(), causeOf(err))
			continue
		}
		for key, want := range test.details {
			if got := info.GetMetadata()[key]; got != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
	}
}
