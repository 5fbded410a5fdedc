package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
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

// Listen opens an endpoint. It removes the socket of an earlier process, but no other file.
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
