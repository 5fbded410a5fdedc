package rpc

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Meter measures RPCs. Began gets the method and the objects of an RPC; object is empty for an RPC about the driver itself. The returned
// function gets the gRPC code at the end.
type Meter interface {
	Began(method, object string) (ended func(code string))
}

// Measure reports every RPC to m. It stands outside Codes, so that it sees the code for the caller.
func Measure(m Meter) Wrapper {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		object := strings.Trim(fmt.Sprint(objects(req, nil)), "[]")
		ended := m.Began(methodOf(info), object)
		resp, err := handler(ctx, req)
		ended(status.Code(err).String())
		return resp, err
	}
}
