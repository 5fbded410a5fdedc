package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// ParseEndpoint splits an endpoint into the network and address that net.Listen takes: "unix://PATH" or "tcp://HOST:PORT", with
// the scheme in any case. As upstream does, a unix path is made absolute: unix://csi/csi.sock is /csi/csi.sock.
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

// Listen opens an endpoint. A socket that an earlier process left behind is removed; any other file in its place is not.
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
		return fmt.Errorf("cannot look at the socket %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is in the socket's place and is no socket; remove it", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot remove the old socket: %w", err)
	}
	return nil
}
