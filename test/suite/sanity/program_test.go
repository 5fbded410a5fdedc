package sanity

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// cloud has the flags of both driver roles for the cloud they run on.
type cloud struct {
	controller, node []string
	most             int // volumes that Nova attaches to a server; 0 if it sets no limit
}

// mostDisks is how many volumes the simulated Nova attaches to a server: 26 names of virtio disks, minus that of the root disk.
const mostDisks = 25

// startSimulation starts the simulated cloud; the driver runs on its server node-az1. If the test runs as root, the volumes are loop devices.
// Otherwise they have no data.
func startSimulation(t *testing.T) cloud {
	t.Helper()
	dir, disks := filepath.Join(t.TempDir(), "simulation"), filepath.Join(t.TempDir(), "disks")
	args := []string{"--dir=" + dir, "--latency=5ms"}
	if asRoot() {
		args = append(args, "--disks="+disks)
	}
	start(t, filepath.Join(t.TempDir(), "openstack-sim.log"), "openstack-sim", args...)
	file := filepath.Join(dir, "url")
	var url string
	await(t, "the simulated cloud to listen", func(context.Context) error {
		text, err := os.ReadFile(file)
		if url = strings.TrimSpace(string(text)); err == nil && url == "" {
			return errors.New("file url is empty")
		}
		return err
	})
	c := cloud{
		controller: []string{"--cloud-config=" + filepath.Join(dir, "cloud.conf")},
		node:       append(limitedTo(t, mostDisks), "--metadata-url="+url+"/metadata/node-az1"),
		most:       mostDisks,
	}
	if asRoot() {
		c.node = append(c.node, disksOf(filepath.Join(disks, "servers", "by-name", "node-az1"))...)
	}
	return c
}

func asRoot() bool { return os.Geteuid() == 0 }

// disksOf are the driver flags for the disks of a server that a directory shows.
func disksOf(server string) []string {
	return []string{"--sys-root=" + filepath.Join(server, "sys"), "--dev-root=" + filepath.Join(server, "dev")}
}

// limitedTo are the flags of a node with that attach limit.
func limitedTo(t *testing.T, volumes int) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limit.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[BlockStorage]\nnode-volume-attach-limit=%d\n", volumes), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--cloud-config=" + path}
}

// realCloud is the OpenStack of test/bed/openstack. The driver runs on one of its servers. If Nova has a limit, the driver gets it as a flag.
func realCloud(t *testing.T, dir string) cloud {
	t.Helper()
	at := filepath.Join(dir, "servers", "by-name", *server)
	c := cloud{
		controller: []string{"--cloud-config=" + cmp.Or(*conf, filepath.Join(dir, "cloud.conf"))},
		node:       append(disksOf(at), "--config-drive-dir="+filepath.Join(at, "config-drive")),
	}
	text, err := os.ReadFile(filepath.Join(dir, "etc", "nova", "nova.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if found := novaLimit.FindSubmatch(text); found != nil {
		disks, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		c.most = disks - 1 // without the root disk
		c.node = append(c.node, limitedTo(t, c.most)...)
	}
	return c
}

// novaLimit is the most disks that Nova attaches to a server, if it has a limit.
var novaLimit = regexp.MustCompile(`(?m)^max_disk_devices_to_attach = ([0-9]+)$`)

// startDriver starts the driver and returns its address once it answers.
func startDriver(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	address := "unix://" + filepath.Join(dir, name+".sock")
	start(t, filepath.Join(dir, name+".log"), "cinder-csi-driver", append(args, "--endpoint="+address)...)
	awaitDriver(t, address)
	return address
}

func awaitDriver(t *testing.T, address string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	await(t, "the driver to answer", func(ctx context.Context) error {
		_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
		return err
	})
}

// nothingLeft wants the cloud to have no volume and no snapshot.
func nothingLeft(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	controller := csi.NewControllerClient(conn)
	if volumes, err := controller.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); err != nil || len(volumes.GetEntries()) > 0 {
		t.Errorf("want no volume left, got %v, %v", volumes, err)
	}
	if snapshots, err := controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{}); err != nil || len(snapshots.GetEntries()) > 0 {
		t.Errorf("want no snapshot left, got %v, %v", snapshots, err)
	}
}

// start starts a program of bin/. At the end of the test it stops the program with SIGTERM and wants exit code 0. If the test failed, it
// prints the log of the program.
func start(t *testing.T, log, name string, args ...string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; `make build` builds it", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it fails if the program has ended; Wait reports that
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: want exit 0 after SIGTERM, got %v", name, err)
		}
		if text, err := os.ReadFile(log); t.Failed() {
			t.Logf("log of %s: %v\n%s", name, err, bytes.TrimSpace(text))
		}
	})
}

// await calls try until it returns no error.
func await(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting for %s: %v", what, err)
		case <-tick.C:
		}
	}
}
