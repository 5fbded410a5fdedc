// Package memnet is an in-memory network for tests with virtual time: sockets of the operating system never become idle in the
// eyes of testing/synctest, pipes do.
//
// Listen gives a net.Listener whose connections are net.Pipe, faithful to a server's life (keep-alive, half-read bodies, drain);
// Transport serves HTTP requests by a handler in a goroutine, the fast way.
package memnet

import (
	"context"
	"net"
	"sync"
)

// Listener accepts connections that were made by its own Dial. Make it with Listen.
type Listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen gives a listener that nothing but its Dial reaches. Inside a synctest bubble, create it there.
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

// Dial connects. It waits until the connection is accepted, and fails with ctx's error or, once the listener is closed,
// net.ErrClosed.
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

// DialContext is Dial in the shape http.Transport and gRPC dialers want; network and address are not looked at.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.Dial(ctx)
}

// Close wakes Accept and every Dial under way; accepted connections live on. Closing again does nothing.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a fixed name, "mem".
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "mem" }
func (addr) String() string  { return "mem" }
