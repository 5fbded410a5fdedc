package rpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// ParseEndpoint splits "unix://PATH" or "tcp://HOST:PORT" into the network and address for net.Listen. The scheme may have any case. As in
// upstream, a unix path is absolute: unix://csi/csi.sock is /csi/csi.sock.
func ParseEndpoint(endpoint string) (network, address string, err error) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found || rest == "" {
		return "", "", fmt.Errorf("endpoint %q is neither unix://PATH nor tcp://HOST:PORT", endpoint)
	}
	switch strings.ToLower(scheme) {
	case "unix":
		return "unix", "/" + strings.TrimLeft(rest, "/"), nil
	case "tcp":
		return "tcp", rest, nil
	}
	return "", "", fmt.Errorf("endpoint %q: the scheme %q is neither unix nor tcp", endpoint, scheme)
}

// lockPoll is how often Own tries again while an earlier process has the endpoint.
const lockPoll = 200 * time.Millisecond

// Own waits until no other process has the endpoint, and keeps it until release is called or the process ends. Own it before Listen, and for as long
// as anything of the process works. A pod that was deleted by force may still make a file system while its successor starts. The lock is on a file
// beside the socket, which stays: removing it would give two processes two locks. A TCP endpoint has no lock but its port.
//
// Error: that of ctx if it ended first.
func Own(ctx context.Context, endpoint string, log *slog.Logger) (release func(), err error) {
	network, address, err := ParseEndpoint(endpoint)
	if err != nil || network != "unix" {
		return func() {}, err
	}
	file, err := os.OpenFile(address+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of %s: %w", endpoint, err)
	}
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waits := false; ; waits = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", file.Name(), err)
		}
		if !waits {
			log.Warn("another driver process has the socket; this one waits until it ends. If it does not end, two drivers are installed with one socket on this node",
				"endpoint", endpoint, "lock", file.Name())
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("another driver process has %s, which did not end in time: %w", endpoint, ctx.Err())
		}
	}
}

// Listen opens an endpoint that the process owns. It removes the socket of an earlier process, but no other file. The socket outlives the listener:
// a successor may have replaced it by then.
func Listen(endpoint string) (net.Listener, error) {
	network, address, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		if err := removeSocket(address); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", endpoint, err)
	}
	if socket, ok := listener.(*net.UnixListener); ok {
		socket.SetUnlinkOnClose(false)
		if err := os.Chmod(address, 0o600); err != nil { // a client acts with the rights of the driver, and the umask is the runtime's
			return nil, errors.Join(fmt.Errorf("cannot restrict who may connect to %s: %w", endpoint, err), listener.Close())
		}
	}
	return listener, nil
}

func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the file type of %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is not a socket; remove it, so that the driver can create its socket there", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot remove the socket of an earlier process: %w", err)
	}
	return nil
}
