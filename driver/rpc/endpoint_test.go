package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
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
	// A client acts with the rights of the driver.
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want mode 0600, got %v: %v", info.Mode(), err)
	}
	_ = listener.Close()
}

func TestAFileThatIsNotASocketStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	testfile.Write(t, path, "precious", 0o600)
	if _, err := Listen("unix:/" + path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if content, _ := os.ReadFile(path); string(content) != "precious" {
		t.Error("it was removed")
	}
}

func TestAnEndingDriverLeavesTheSocketOfItsSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	first, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_ = first.Close() // what GracefulStop does
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("want the second driver reachable after the first ended: %v", err)
	}
	_ = c.Close()
}

func TestADriverWaitsForTheProcessThatHasItsSocket(t *testing.T) {
	t.Parallel()
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	release, err := Own(t.Context(), endpoint, log)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Own(ctx, endpoint, log); !errors.Is(err, context.Canceled) {
		t.Errorf("want no second owner, got %v", err)
	}
	_ = first.Close() // it drains: the socket is closed, and operations go on
	if _, err := Own(ctx, endpoint, log); !errors.Is(err, context.Canceled) {
		t.Errorf("want no second owner while the first drains, got %v", err)
	}
	if n := strings.Count(out.String(), "another driver process has the socket"); n != 2 {
		t.Errorf("want each wait logged once, got %s", out.String())
	}
	second := make(chan error, 1)
	go func() {
		again, err := Own(t.Context(), endpoint, slog.New(slog.DiscardHandler))
		if err == nil {
			again()
		}
		second <- err
	}()
	release()
	if err := <-second; err != nil {
		t.Errorf("want the second to own it once the first has ended, got %v", err)
	}
}

// The lock ends with its process, however that ends.
func TestAKilledDriverOwnsNothing(t *testing.T) {
	t.Parallel()
	if endpoint := os.Getenv("OWN_ENDPOINT"); endpoint != "" {
		release, err := Own(t.Context(), endpoint, slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("owned")
		_, _ = io.Copy(io.Discard, os.Stdin) // a process that waits for nothing ends as a deadlock
		release()
	}
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	other := exec.Command(os.Args[0], "-test.run=^TestAKilledDriverOwnsNothing$")
	other.Env = append(os.Environ(), "OWN_ENDPOINT="+endpoint)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.StdinPipe(); err != nil { // open until it is killed
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "owned\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Own(ctx, endpoint, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("want it owned by the other process")
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	release, err := Own(t.Context(), endpoint, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	release()
}
