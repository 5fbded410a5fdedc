package guest

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
)

// Agent is the agent in a guest.
type Agent struct {
	client   *rpc.Client
	console  func() string // what the guest has printed, for messages
	patience time.Duration
}

// Connect waits for the agent behind a socket of QEMU. QEMU holds calls that arrive before the guest is up.
func Connect(socket string, patience time.Duration, console func() string) (*Agent, error) {
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	a := &Agent{jsonrpc.NewClient(conn), console, patience}
	var uptime string
	if err := a.call("Hello", struct{}{}, &uptime); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Close ends the connection. The agent stays.
func (a *Agent) Close() error { return a.client.Close() }

// call calls a method of the agent.
func (a *Agent) call(method string, args, result any) error {
	pending := a.client.Go("Agent."+method, args, result, make(chan *rpc.Call, 1))
	select {
	case done := <-pending.Done:
		return done.Error
	case <-time.After(a.patience):
		return fmt.Errorf("the agent did not answer %s within %s; the guest's console: %s", method, a.patience, a.console())
	}
}

// Run runs a program in the guest.
func (a *Agent) Run(c agent.Command) (o agent.Outcome, err error) {
	return o, a.call("Run", c, &o)
}

// Shell runs a script in the guest, and returns what it printed. A script that fails is an error with its output.
func (a *Agent) Shell(script string) (string, error) {
	o, err := a.Run(agent.Command{Args: []string{"/busybox/sh", "-ec", script}})
	if err == nil && o.Code != 0 {
		err = fmt.Errorf("in the guest, %s: exit code %d: %s", script, o.Code, o.Output)
	}
	return strings.TrimSpace(string(o.Output)), err
}

// Start starts a program in the guest and returns its process ID.
func (a *Agent) Start(c agent.Command) (pid int, err error) {
	return pid, a.call("Start", c, &pid)
}

// Uevents returns the kernel events of block devices, from number first on.
func (a *Agent) Uevents(first int) (events []agent.Uevent, err error) {
	return events, a.call("Uevents", first, &events)
}

// DialDriver connects to the socket of the driver in the guest through the agent, for guests without a network.
func (a *Agent) DialDriver(_ context.Context, _ string) (net.Conn, error) {
	var id int
	if err := a.call("Dial", struct{}{}, &id); err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	go func() { // to the driver
		buffer := make([]byte, 32<<10)
		for {
			n, err := there.Read(buffer)
			if err == nil {
				err = a.client.Call("Agent.Write", agent.Packet{ID: id, Data: buffer[:n]}, &struct{}{})
			}
			if err != nil {
				there.Close()
				return
			}
		}
	}()
	go func() { // from the driver
		defer there.Close()
		for {
			var data []byte
			if a.client.Call("Agent.Read", id, &data) != nil {
				return
			}
			if _, err := there.Write(data); err != nil {
				return
			}
		}
	}()
	return &tunnel{here, func() { _ = a.call("Close", id, &struct{}{}) }}, nil
}

// tunnel closes the connection in the guest with its own end: the agent answers nobody else while a call waits for the driver.
type tunnel struct {
	net.Conn
	closed func()
}

func (t *tunnel) Close() error {
	defer t.closed()
	return t.Conn.Close()
}
