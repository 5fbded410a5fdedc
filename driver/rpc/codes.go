package rpc

import (
	"context"
	"errors"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// row is what a kind of error becomes.
type row struct {
	code codes.Code
	// pursued is the code after a request that may have changed the cloud, for RPCs that are in pursuits: one of those after
	// which the sidecars and kubelet go on pursuing what they asked for, never a final one.
	pursued codes.Code
}

// What the kinds become (CSI specification, "Error Scheme", and that of each RPC). This is the only place that knows codes.
var table = map[volume.Kind]row{
	volume.Unknown:          {codes.Internal, codes.Aborted},
	volume.InvalidArgument:  {codes.InvalidArgument, codes.Aborted},
	volume.NotFound:         {codes.NotFound, codes.Aborted},
	volume.Conflict:         {codes.FailedPrecondition, codes.Aborted},
	volume.Busy:             {codes.Aborted, codes.Aborted},
	volume.Incompatible:     {codes.AlreadyExists, codes.Aborted},
	volume.OutOfRange:       {codes.OutOfRange, codes.Aborted},
	volume.Exhausted:        {codes.ResourceExhausted, codes.Aborted},
	volume.Unauthenticated:  {codes.Unauthenticated, codes.Unavailable},
	volume.PermissionDenied: {codes.PermissionDenied, codes.Unavailable},
	volume.Unavailable:      {codes.Unavailable, codes.Unavailable},
	volume.DeadlineExceeded: {codes.DeadlineExceeded, codes.DeadlineExceeded},
	volume.Canceled:         {codes.Canceled, codes.Canceled},
	// Internal is for what this driver did not foresee. That a cloud gives up on an object is a state like any other: final, and as
	// it is until somebody looks or the caller begins anew.
	volume.Failed:        {codes.FailedPrecondition, codes.Aborted},
	volume.Unimplemented: {codes.Unimplemented, codes.Aborted},
	volume.DataLoss:      {codes.FailedPrecondition, codes.Aborted},
	// external-provisioner gives the claim back to the scheduler, which picks another node (CSI specification, CreateVolume Errors,
	// "Unable to provision in accessible_topology").
	volume.NotHere: {codes.ResourceExhausted, codes.Aborted},
}

// pursuits lists the RPCs that make something which a final answer would orphan: external-provisioner and external-snapshotter
// forget the object, external-attacher and kubelet the attachment and the staging. After the other RPCs whatever was asked for
// is asked for again, whatever the code, so that the plain one tells most.
var pursuits = map[string]bool{
	"CreateVolume": true, "CreateSnapshot": true, "CreateVolumeGroupSnapshot": true,
	"ControllerPublishVolume": true, "ControllerExpandVolume": true, "ControllerModifyVolume": true,
	"NodeStageVolume": true,
}

// codeOf is the code for an error of a method, named without its service.
func codeOf(method string, err error) codes.Code {
	r := table[volume.KindOf(err)]
	if pursuits[method] && volume.MayHaveWritten(err) {
		return r.pursued
	}
	return r.code
}

// coded is an error of the domain with the code its caller gets; the wrappers around Codes see both.
type coded struct {
	cause error
	code  codes.Code
}

func (c coded) Error() string              { return c.GRPCStatus().String() }
func (c coded) Unwrap() error              { return c.cause }
func (c coded) GRPCStatus() *status.Status { return status.New(c.code, c.cause.Error()) }

// Codes turns the domain's errors into gRPC's. A gRPC status passes unchanged: that of an RPC which is not implemented.
func Codes() Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if err == nil {
			return resp, nil
		}
		var ours *volume.Error
		if _, isStatus := status.FromError(err); isStatus && !errors.As(err, &ours) {
			return nil, err
		}
		return nil, coded{cause: err, code: codeOf(methodOf(info), err)}
	}
}

// methodOf is a method's name without its service: "CreateVolume".
func methodOf(info *grpc.UnaryServerInfo) string { return path.Base(info.FullMethod) }
