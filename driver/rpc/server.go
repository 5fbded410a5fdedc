// Package rpc is the driver's gRPC server: endpoints, what is put around every RPC, and the one table that turns kinds of errors
// into codes. It knows no RPC's meaning.
package rpc

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// Services are what a server offers; nil ones are not registered.
type Services struct {
	Identity   csi.IdentityServer
	Controller csi.ControllerServer
	Node       csi.NodeServer
}

// Server answers RPCs.
type Server struct{ grpc *grpc.Server }

// NewServer gives a server whose RPCs go through the wrappers, the first being the outermost.
func NewServer(s Services, wrappers ...Wrapper) *Server {
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(wrappers...))
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

// Serve answers RPCs until ctx ends. Then it takes no new ones, lets those under way finish, and cancels what is not done after
// grace. It closes the listener and returns nil for such an end, the listener's error otherwise.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.grpc.GracefulStop()
	}()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
		s.grpc.Stop()
		<-drained
	}
	if err := <-failed; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
