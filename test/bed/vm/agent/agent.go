// Package agent works for the test inside the guest. It runs programs, records the kernel events of disks with their times, and forwards
// connections to the driver socket. They come from a TCP port, or from calls for guests without a network. Calls are JSON-RPC over a virtio
// serial port. That port exists before any network, and it is not part of the tests.
package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"time"
)

// Port is the name of the serial port.
const Port = "cinder-csi.agent"

// The socket of the driver in the guest, and the TCP port of the guest that forwards to it.
const (
	Socket  = "/csi/csi.sock"
	TCPPort = 9000
)

// Command is a program to run in the guest.
type Command struct {
	Args  []string
	Env   []string // added to the environment of the agent
	Input []byte
	Log   string // Start only: the file for the output of the program
}

// Outcome is the result of a program.
type Outcome struct {
	Code   int
	Output []byte // standard output and error
}

// Agent has the methods that the host calls.
type Agent struct {
	events  *events
	tunnels tunnels
}

// Hello returns when the guest is up.
func (a *Agent) Hello(_ struct{}, uptime *string) error {
	text, err := os.ReadFile("/proc/uptime")
	*uptime = string(text)
	return err
}

// Run runs a program to its end. It returns no error if the program fails.
func (a *Agent) Run(c Command, o *Outcome) error {
	cmd := c.command()
	cmd.Stdin = bytes.NewReader(c.Input)
	var err error
	o.Output, err = cmd.CombinedOutput()
	o.Code = cmd.ProcessState.ExitCode()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// Start starts a program and returns its process ID.
func (a *Agent) Start(c Command, pid *int) error {
	log, err := os.Create(c.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := c.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	*pid = cmd.Process.Pid
	go func() { _ = cmd.Wait() }()
	return nil
}

// Uevents returns the kernel events of block devices from number first on.
func (a *Agent) Uevents(first int, list *[]Uevent) error {
	*list = a.events.from(first)
	return nil
}

func (c Command) command() *exec.Cmd {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	return cmd
}

// Serve answers the host. When a host closes its connection, another one may open the next: the port reads as ended until then.
func Serve(port io.ReadWriter) error {
	events, err := listen()
	if err != nil {
		return fmt.Errorf("listen to the kernel's events: %w", err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", TCPPort))
	if err != nil {
		return err
	}
	go forward(listener)
	a := &Agent{events: events}
	const untilAnother = 100 * time.Millisecond
	for ; ; time.Sleep(untilAnother) {
		if err := a.serve(port); err != nil {
			return err
		}
	}
}

// serve answers one host until it closes its connection.
func (a *Agent) serve(port io.ReadWriter) error {
	server := rpc.NewServer()
	if err := server.Register(a); err != nil {
		return err
	}
	server.ServeCodec(jsonrpc.NewServerCodec(&host{port, a.tunnels.closeAll}))
	return nil
}

// host is a connection of the host. When it ends, gone closes what the host has opened. Otherwise a call that waits for the driver would
// never end, and net/rpc waits for all calls.
type host struct {
	io.ReadWriter
	gone func()
}

func (h *host) Read(p []byte) (int, error) {
	n, err := h.ReadWriter.Read(p)
	if err != nil {
		h.gone()
	}
	return n, err
}

func (h *host) Close() error { return nil }

// forward forwards each connection to the driver socket.
func forward(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.DialTimeout("unix", Socket, time.Second)
			if err != nil {
				return
			}
			defer to.Close()
			go func() {
				defer to.Close()
				_, _ = io.Copy(to, from)
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}
