package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Measure reports every RPC: began gets its method. At the end, the function that it returns gets the gRPC code, and the cause of an error. It
// stands outside Codes, so that it sees what the caller gets.
func Measure(began func(method string) (ended func(code, cause string))) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ended := began(methodOf(info))
		resp, err := handler(ctx, req)
		ended(status.Code(err).String(), causeOf(err))
		return resp, err
	}
}

// slowAfter is when the log mentions an RPC in progress for the first time. Each further line comes after twice the time. A cloud attaches a
// volume in a few seconds; external-attacher gives up after three minutes and calls again.
const slowAfter = 15 * time.Second

// Track lists the operations that change something or read one object, and logs RPCs that are slow. An RPC about the driver itself has no
// object and is not listed. Track stands outside Log, so that Log sees the Progress of the RPC.
func Track(list *operation.List, log *slog.Logger) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, progress := volume.WithProgress(ctx)
		of := objects(req, nil)
		if len(of) == 0 {
			return handler(ctx, req)
		}
		method := methodOf(info)
		end := list.Begin(operation.Key{Method: method, Object: strings.Trim(fmt.Sprint(of), "[]")}, progress)
		stop := logSlow(ctx, log, progress, append([]any{"method", method}, of...))
		resp, err := handler(ctx, req)
		stop()
		end(status.Code(err).String(), status.Convert(err).Message(), causeOf(err))
		return resp, err
	}
}

// logSlow logs what an RPC waits for, after slowAfter and then each time the duration has doubled, until stop.
func logSlow(ctx context.Context, log *slog.Logger, progress *volume.Progress, attributes []any) (stop func()) {
	began, ended := time.Now(), make(chan struct{})
	var again func(after time.Duration) *time.Timer
	again = func(after time.Duration) *time.Timer {
		return time.AfterFunc(after, func() {
			select {
			case <-ended:
				return
			default:
			}
			line := append(append([]any{}, attributes...), "duration", time.Since(began).Round(time.Second))
			if step, waits := progress.Step(); waits {
				line = append(line, "step", step.What, "step_duration", time.Since(step.Since).Round(time.Second))
			}
			if state := progress.State(); state != "" {
				line = append(line, "state", state)
			}
			if ids := progress.Requests(); len(ids) > 0 {
				line = append(line, "requests", ids)
			}
			log.InfoContext(ctx, "rpc in progress", line...)
			again(time.Since(began))
		})
	}
	timer := again(slowAfter)
	return func() { close(ended); timer.Stop() }
}
