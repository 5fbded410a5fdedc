package rpc

import (
	"context"
	"errors"
	"path"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

type kindCodes struct {
	code codes.Code
	// afterWrite is the code after a request that may have changed the cloud, for an RPC in endsAtFinalCode. It is never final: the
	// sidecars and kubelet retry after it.
	afterWrite codes.Code
}

// codesByKind is the only place that chooses codes (CSI specification, "Error Scheme", and the errors of each RPC).
var codesByKind = map[volume.Kind]kindCodes{
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
	// Not Internal, which is for defects of the driver. An object in an error status is a normal case: it stays so until somebody
	// repairs it or the caller creates another.
	volume.Failed:        {codes.FailedPrecondition, codes.Aborted},
	volume.Unimplemented: {codes.Unimplemented, codes.Aborted},
	// Not the gRPC code DataLoss, which says that data is lost: the driver refuses the request so that none is.
	volume.DataLoss: {codes.FailedPrecondition, codes.Aborted},
	// After this code external-provisioner asks the scheduler for another node (CSI specification, CreateVolume Errors, "Unable to
	// provision in accessible_topology").
	volume.NotInZone: {codes.ResourceExhausted, codes.Aborted},
	volume.NotOwned:  {codes.PermissionDenied, codes.Unavailable},
}

// endsAtFinalCode lists the RPCs that a caller gives up after a final code: any but Canceled, DeadlineExceeded, Unavailable and Aborted.
// external-provisioner and external-snapshotter then forget the object, external-attacher and kubelet the attachment or the staging. Callers
// repeat the other RPCs after any code, so these return the most specific one.
var endsAtFinalCode = map[string]bool{
	"CreateVolume": true, "CreateSnapshot": true, "CreateVolumeGroupSnapshot": true,
	"ControllerPublishVolume": true, "ControllerExpandVolume": true, "ControllerModifyVolume": true,
	"NodeStageVolume": true,
}

// codeOf is the code for an error of an RPC: "CreateVolume", without its service.
func codeOf(method string, err error) codes.Code {
	c := codesByKind[volume.KindOf(err)]
	if endsAtFinalCode[method] && volume.MayHaveWritten(err) {
		return c.afterWrite
	}
	return c.code
}

// statusError is an error of the domain with what its caller gets. The wrappers outside Codes see both.
type statusError struct {
	cause  error
	status *status.Status
}

func (e statusError) Error() string              { return e.status.String() }
func (e statusError) Unwrap() error              { return e.cause }
func (e statusError) GRPCStatus() *status.Status { return e.status }

// newStatusError adds the cause to the message, which is all that an event has of it besides the code, and to the details for programs.
func newStatusError(method, driver string, err error) statusError {
	id := volume.CauseOf(err)
	s := status.New(codeOf(method, err), cause.End(cut(err.Error(), maxMessage), id))
	if id == "" {
		return statusError{err, s}
	}
	info := &errdetails.ErrorInfo{Reason: string(id), Domain: driver, Metadata: map[string]string{"kind": volume.KindOf(err).String()}}
	if row, found := cause.Find(id); found {
		info.Metadata["who"], info.Metadata["passes"] = string(row.Who), strconv.FormatBool(row.Passes)
	}
	var e *volume.Error
	if errors.As(err, &e) && e.RequestID != "" {
		info.Metadata["request"] = e.RequestID
	}
	if detailed, err := s.WithDetails(info); err == nil {
		s = detailed
	}
	return statusError{err, s}
}

// causeOf is the cause that the caller of an RPC gets; empty for a success, or an RPC without an implementation.
func causeOf(err error) string {
	var s statusError
	if !errors.As(err, &s) {
		return ""
	}
	return string(volume.CauseOf(s.cause))
}

// Codes converts errors of the domain to gRPC errors. The driver name is the domain of their details. It leaves a gRPC status as it is: that of an RPC without an implementation.
func Codes(driver string) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if err == nil {
			return resp, nil
		}
		var ours *volume.Error
		if _, isStatus := status.FromError(err); isStatus && !errors.As(err, &ours) {
			return nil, err
		}
		return nil, newStatusError(methodOf(info), driver, err)
	}
}

// methodOf is a method's name without its service: "CreateVolume".
func methodOf(info *grpc.UnaryServerInfo) string { return path.Base(info.FullMethod) }
