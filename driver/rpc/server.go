// Package rpc is the gRPC server of the driver: endpoints, the wrappers around every RPC, and the one table from error kinds to codes. It
// does not know what an RPC means.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// Services are the CSI services of a server; it does not register those that are nil.
type Services struct {
	Identity   csi.IdentityServer
	Controller csi.ControllerServer
	Node       csi.NodeServer
}

// Server serves RPCs.
type Server struct{ grpc *grpc.Server }

// NewServer returns a server with wrappers around each RPC; the first wrapper is the outermost. The option, such as
// that of the tracing, is outside of all; nil is none.
func NewServer(s Services, option grpc.ServerOption, wrappers ...Wrapper) *Server {
	server := grpc.NewServer(cmp.Or[grpc.ServerOption](option, grpc.EmptyServerOption{}), grpc.ChainUnaryInterceptor(wrappers...))
	if s.Identity != nil {
		csi.RegisterIdentityServer(server, s.Identity)
	}
	if s.Controller != nil {
		csi.RegisterControllerServer(server, s.Controller)
	}
	if s.Node != nil {
		csi.RegisterNodeServer(server, s.Node)
	}
	return &Server{grpc: server}
}

// Serve serves RPCs until ctx ends. Then it accepts no new RPC, waits for those in flight, and cancels them after the grace time. It closes
// the listener. Its only errors are those of the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	defer time.AfterFunc(grace, s.grpc.Stop).Stop()
	s.grpc.GracefulStop()
	if err := <-failed; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
