package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Wrapper surrounds every RPC.
type Wrapper = grpc.UnaryServerInterceptor

// levelBodies is the log level of complete requests and answers, without secrets; it is klog's -v=5.
const levelBodies = slog.LevelDebug - 1

// Recover converts a panic to an error, so that other RPCs continue. It logs those of other goroutines too, which are the errors of the RPCs that
// waited for them. The RPC may have changed the cloud, so the error says AfterWrite.
func Recover(log *slog.Logger) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		err = panics.Try(func() (err error) { resp, err = handler(ctx, req); return err })
		var defect *panics.Error
		if !errors.As(err, &defect) {
			return resp, err
		}
		log.ErrorContext(ctx, "an RPC panicked; please report this defect", "method", methodOf(info), "panic", defect.What, "stack", defect.Stack)
		return nil, volume.Errorf(volume.Unknown, "%s: a defect in the driver (%v); the log of the driver has the stack", methodOf(info), defect).AfterWrite()
	}
}

// Deadline ends every RPC shortly before the deadline of its caller, so that the caller reads what the driver waited for. An RPC without a
// deadline gets the longest one, so that every wait ends.
func Deadline(longest time.Duration) Wrapper {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			limited, cancel := context.WithTimeout(ctx, longest)
			defer cancel()
			ctx = limited
		}
		ctx, cancel := volume.BeforeDeadline(ctx)
		defer cancel()
		resp, err := handler(ctx, req)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = explainDeadline(ctx, err)
		}
		return resp, err
	}
}

// explainDeadline adds to the error of an RPC that ran out of time what the driver waited for, since when, and the OpenStack request IDs. With
// an ID the operator of the cloud finds the request.
func explainDeadline(ctx context.Context, err error) error {
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	text := strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error())
	if text == context.DeadlineExceeded.Error() {
		text = "the deadline of the caller has passed"
	}
	if step, waited := volume.ProgressOf(ctx).CutShort(); waited {
		text += fmt.Sprintf(" (%s since %s, for %v)", step.What, step.Since.UTC().Format("15:04:05 MST"), time.Since(step.Since).Round(time.Second))
	}
	if ids := volume.ProgressOf(ctx).Requests(); len(ids) > 0 {
		text += " (OpenStack requests: " + strings.Join(ids, ", ") + ")"
	}
	return volume.Errorf(volume.KindOf(err), "%s", text).Because(err)
}

// quiet are the read-only RPCs that sidecars and kubelet repeat all the time. Their success has the log level debug. NodeGetInfo is called
// once, so it is not quiet.
var quiet = map[string]bool{
	"Probe": true, "GetPluginInfo": true, "GetPluginCapabilities": true, "ControllerGetCapabilities": true, "NodeGetCapabilities": true,
	"NodeGetVolumeStats": true, "NodeGetVolumeHealth": true, "NodeGetStorageHealth": true, "ListVolumes": true, "ControllerGetVolume": true,
	"ValidateVolumeCapabilities": true, "ListSnapshots": true, "GetSnapshot": true, "GetCapacity": true, "ControllerGetVolumeHealth": true,
	"ControllerListVolumeHealth": true,
}

// Log writes one line at the end of each RPC: method, objects, duration, code, and the OpenStack request ids of the writes. For an error it
// adds kind and cause, and whether the cloud may have changed. At levelBodies it also logs requests and answers, without the fields that the CSI
// specification marks as secret.
func Log(log *slog.Logger) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		method := methodOf(info)
		if log.Enabled(ctx, levelBodies) {
			log.Log(ctx, levelBodies, "request", "method", method, "body", protosanitizer.StripSecrets(req).String())
		}
		start := time.Now()
		resp, err := handler(ctx, req)
		attributes := append([]any{"method", method}, objects(req, resp)...)
		if ids := volume.ProgressOf(ctx).Requests(); len(ids) > 0 {
			attributes = append(attributes, "requests", ids)
		}
		attributes = append(attributes, "duration", time.Since(start).Round(time.Millisecond), "code", status.Code(err).String())
		if err != nil {
			log.Log(ctx, levelOf(err), "rpc", append(attributes, "kind", volume.KindOf(err).String(), "cause", causeOf(err), "written", volume.MayHaveWritten(err), "error", status.Convert(err).Message())...)
			return resp, err
		}
		level := slog.LevelInfo
		if quiet[method] {
			level = slog.LevelDebug
		}
		log.Log(ctx, level, "rpc", attributes...)
		if log.Enabled(ctx, levelBodies) {
			log.Log(ctx, levelBodies, "answer", "method", method, "body", protosanitizer.StripSecrets(resp).String())
		}
		return resp, nil
	}
}

// levelOf is error for what a person must fix, and warn for what a retry may fix.
func levelOf(err error) slog.Level {
	if volume.Is(err, volume.DataLoss) { // its gRPC code does not tell it from a conflict, and a person must act
		return slog.LevelError
	}
	switch status.Code(err) {
	case codes.Internal, codes.Unauthenticated, codes.PermissionDenied, codes.Unknown:
		return slog.LevelError
	case codes.Unimplemented:
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// Anybody who writes a PersistentVolume chooses the ID in a request, of up to a megabyte. Logs, errors and the list of operations have its beginning.
const (
	maxName    = 512     // bytes of an ID, name or path
	maxMessage = 4 << 10 // bytes of an error without its cause
)

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…" // the cut may be inside a character
}

// objects lists names and ids for a log line, as keys and values. They come from the request, and for a created object from the answer.
func objects(req, resp any) []any {
	var found []any
	add := func(key, value string) {
		if value != "" {
			found = append(found, key, cut(value, maxName))
		}
	}
	if r, ok := req.(interface{ GetVolumeId() string }); ok {
		add("volume", r.GetVolumeId())
	}
	if r, ok := req.(interface{ GetSourceVolumeId() string }); ok {
		add("volume", r.GetSourceVolumeId())
	}
	if r, ok := resp.(*csi.CreateVolumeResponse); ok {
		add("volume", r.GetVolume().GetVolumeId())
	}
	if r, ok := resp.(*csi.CreateSnapshotResponse); ok {
		add("snapshot", r.GetSnapshot().GetSnapshotId())
	}
	if r, ok := req.(interface{ GetSnapshotId() string }); ok {
		add("snapshot", r.GetSnapshotId())
	}
	if r, ok := req.(interface{ GetName() string }); ok {
		add("name", r.GetName())
	}
	if r, ok := req.(interface{ GetNodeId() string }); ok {
		add("server", r.GetNodeId())
	}
	if r, ok := req.(interface{ GetTargetPath() string }); ok {
		add("target", r.GetTargetPath())
	}
	return found
}
