package rpc

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Meter is told of every RPC: its method, and the objects it is about, empty for one that only asks about the driver. What it
// gives is called with the RPC's gRPC code when it has ended.
type Meter interface {
	Began(method, object string) (ended func(code string))
}

// Measure tells m of every RPC. It stands outside Codes, to see the code that the caller gets.
func Measure(m Meter) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		object := strings.Trim(fmt.Sprint(objects(req, nil)), "[]")
		ended := m.Began(methodOf(info), object)
		resp, err := handler(ctx, req)
		ended(status.Code(err).String())
		return resp, err
	}
}
