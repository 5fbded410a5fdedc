package driver

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
)

// The node pods use the network of the host, so a second driver of a node finds the port of the first one taken.
func TestADriverThatCannotStartLeavesTheSocketOfTheOther(t *testing.T) {
	t.Parallel()
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	first, err := rpc.Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	if _, _, err := listen(config.Config{Endpoint: endpoint, HTTPEndpoint: web.Addr().String()}, Dependencies{}); err == nil {
		t.Fatal("want the second driver refused: its port is taken")
	}
	c, err := net.Dial("unix", first.Addr().String())
	if err != nil {
		t.Fatalf("want the first driver still reachable: %v", err)
	}
	_ = c.Close()
}
