// Package memnet is an in-memory network for tests with virtual time. A goroutine that waits for a socket is never idle for
// testing/synctest; one that waits for a pipe is.
//
// Listen returns a net.Listener whose connections are net.Pipe. It behaves like a server: keep-alive, half-read bodies, drain.
// Transport calls a handler in a goroutine for each HTTP request, which is faster.
package memnet

import (
	"context"
	"net"
	"sync"
)

// Listener accepts the connections of its own Dial. Make it with Listen.
type Listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener that only its Dial can reach. Inside a synctest bubble, create it there.
func Listen() *Listener {
	return &Listener{accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next Dial. After Close it returns net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Dial connects. It waits until the listener accepts the connection. Its error is that of ctx, or net.ErrClosed once the listener
// is closed.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	var err error
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	client.Close()
	server.Close()
	return nil, &net.OpError{Op: "dial", Net: "mem", Addr: l.Addr(), Err: err}
}

// DialContext is Dial with the signature that http.Transport and gRPC dialers expect. It ignores network and address.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.Dial(ctx)
}

// Close ends Accept and every Dial in progress. Accepted connections stay open. A second Close does nothing.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a fixed name, "mem".
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "mem" }
func (addr) String() string  { return "mem" }
