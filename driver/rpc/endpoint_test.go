package rpc

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix://csi/csi.sock":          "unix /csi/csi.sock", // upstream's manifests say so
		"unix:///csi/csi.sock":         "unix /csi/csi.sock",
		"UNIX:///var/lib/csi.sock":     "unix /var/lib/csi.sock",
		"tcp://127.0.0.1:10000":        "tcp 127.0.0.1:10000",
		"":                             "",
		"/csi/csi.sock":                "",
		"unix://":                      "",
		"http://localhost":             "",
		"unix:/csi/csi.sock":           "",
		"unix://csi/../other/csi.sock": "unix /csi/../other/csi.sock",
	} {
		network, address, err := ParseEndpoint(endpoint)
		if got := strings.TrimSpace(network + " " + address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: want %q, got %q, %v", endpoint, want, got, err)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"unix://csi/csi.sock", "tcp://:1", "://", "unix:////"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		network, address, err := ParseEndpoint(endpoint)
		if err == nil && (address == "" || network == "unix" && !strings.HasPrefix(address, "/")) {
			t.Errorf("%q gives %q %q", endpoint, network, address)
		}
	})
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = old.Close()
	listener, err := Listen("unix:/" + path)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}

func TestAFileThatIsNotASocketStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:/" + path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if content, _ := os.ReadFile(path); string(content) != "precious" {
		t.Error("it was removed")
	}
}
