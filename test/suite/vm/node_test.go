//go:build vm

package vm

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/tools/image"
)

var (
	bin         = flag.String("bin", filepath.Join("..", "..", "..", "bin"), "directory of the driver, and of the guest's parts in vm/")
	kernels     = flag.String("kernels", "trixie", "Debian releases whose kernels the cases run on, separated by commas; the first has every case")
	resultsFile = flag.String("results", "", "file to write what was measured to")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *resultsFile != "" {
		if err := writeResults(*resultsFile); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const gib = int64(1) << 30

// node is a server with the driver's node role in it.
type node struct {
	*guest.Guest
	csi.NodeClient
	pid    int // of the driver
	kernel string
}

// boot starts a server without a driver until the test ends.
func boot(t *testing.T, m guest.Machine) *node {
	t.Helper()
	testenv.NeedTools(t, "qemu-system-x86_64", "qemu-system-x86", "mkfs.ext4", "e2fsprogs")
	recordTest(t, m)
	dir, err := os.MkdirTemp("", "vm-") // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	parts := filepath.Join(*bin, "vm")
	g := testenv.Value(guest.Start(t.Context(), guest.Image{
		Dir: parts, Driver: filepath.Join(*bin, "cinder-csi-driver"), Program: filepath.Join(parts, "guest-agent"),
	}, m, dir))(t)
	n := &node{Guest: g}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the console: %s\nthe driver's log: %s", g.Console(), n.try("tail -n 40 "+driverLog))
		}
		g.Stop()
	})
	n.sh(t, "mount LABEL="+guest.SystemLabel+" /var/lib/kubelet")
	n.kernel = n.sh(t, "uname -r")
	recordKernel(t, n.kernel)
	return n
}

const (
	driverLog = "/run/driver.log"
	cloudConf = "/etc/cloud.conf"
)

// startDriver starts the node role of the driver, by itself or through another program, with the environment of its image.
func (n *node) startDriver(t *testing.T, by []string, args ...string) {
	t.Helper()
	n.sh(t, "touch "+cloudConf)
	command := append([]string{"/busybox/env", "-i"}, image.Env...)
	command = append(append(command, by...), "/usr/bin/cinder-csi-driver", "--endpoint=unix://"+agent.Socket, "--cloud-config="+cloudConf,
		"--provide-controller-service=false", "--logging-format=json", "--v=4")
	pid := testenv.Value(n.Start(agent.Command{Args: append(command, args...), Log: driverLog}))(t)
	conn := testenv.Value(grpc.NewClient("passthrough:///"+n.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}, MinConnectTimeout: 5 * time.Second})))(t)
	t.Cleanup(func() { conn.Close() })
	n.pid, n.NodeClient = pid, csi.NewNodeClient(conn)
	if _, err := csi.NewIdentityClient(conn).Probe(n.ctx(t), &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("the driver does not answer: %v", err)
	}
}

// stopDriver ends the driver as kubelet does.
func (n *node) stopDriver(t *testing.T) {
	t.Helper()
	n.sh(t, fmt.Sprintf("kill %d; while kill -0 %[1]d 2>/dev/null; do usleep 50000; done", n.pid))
}

// ctx is the context of one call.
func (n *node) ctx(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// sh runs a script in the guest, which must succeed, and returns its output.
func (n *node) sh(t *testing.T, script string) string {
	t.Helper()
	out := testenv.Value(n.Shell(script))(t)
	return out
}

// try is sh for messages.
func (n *node) try(script string) string {
	out, err := n.Shell(script)
	if err != nil {
		return err.Error()
	}
	return out
}

// newVolume returns a new volume ID.
func newVolume() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// plug attaches a disk, of one GiB by default, and waits until the kernel of the guest has named it.
func (n *node) plug(t *testing.T, d guest.Disk) device {
	t.Helper()
	if d.Bytes == 0 {
		d.Bytes = gib
	}
	before, err := n.Uevents(0)
	must(t, "read the events", err)
	if err := n.Plug(d); err != nil {
		t.Fatalf("plug %+v: %v", d, err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		events, err := n.Uevents(len(before))
		must(t, "read the events", err)
		if i := slices.IndexFunc(events, newDisk); i >= 0 {
			f := events[i].Fields
			return device{f["DEVNAME"], f["MAJOR"] + ":" + f["MINOR"]}
		}
	}
	t.Fatalf("the guest's kernel never named the disk %+v", d)
	return device{}
}

// device is the name of a disk in the kernel of the guest.
type device struct{ name, number string }

// newDisk reports whether an event announces a new disk.
func newDisk(e agent.Uevent) bool {
	return e.Fields["ACTION"] == "add" && e.Fields["DEVTYPE"] == "disk"
}

func (n *node) unplug(t *testing.T, volume string) {
	t.Helper()
	if err := n.Unplug(volume); err != nil {
		t.Fatalf("unplug %s: %v", volume, err)
	}
}

// claim is a volume and its paths in the calls of the node service. Without fsType it is a raw block volume.
type claim struct {
	id, fsType string
}

func (c claim) staging() string {
	return "/var/lib/kubelet/plugins/kubernetes.io/csi/cinder/" + c.id + "/globalmount"
}
func (c claim) target() string { return "/var/lib/kubelet/pods/" + c.id + "/mount" }

func (c claim) capability() *csi.VolumeCapability { return csitest.Single(c.fsType) }

func (n *node) stage(ctx context.Context, c claim) error {
	return csitest.Outcome(n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: c.capability()}))
}

func (n *node) publish(ctx context.Context, c claim) error {
	return csitest.Outcome(n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: c.id, StagingTargetPath: c.staging(), TargetPath: c.target(), VolumeCapability: c.capability(),
	}))
}

// use stages and publishes.
func (n *node) use(t *testing.T, c claim) {
	t.Helper()
	must(t, "stage", n.stage(n.ctx(t), c))
	must(t, "publish", n.publish(n.ctx(t), c))
}

// release unpublishes and unstages.
func (n *node) release(ctx context.Context, c claim) error {
	_, unpublish := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: c.id, TargetPath: c.target()})
	_, unstage := n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging()})
	return errors.Join(unpublish, unstage)
}

func (n *node) expand(ctx context.Context, c claim, bytes int64) (int64, error) {
	r, err := n.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: c.id, VolumePath: c.target(), StagingTargetPath: c.staging(), VolumeCapability: c.capability(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
	})
	return r.GetCapacityBytes(), err
}

// must fails the test if a call failed.
func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// refused wants an error of one of the codes that holds every word.
func refused(t *testing.T, what string, err error, words []string, want ...codes.Code) {
	t.Helper()
	got := status.Code(err)
	for _, code := range want {
		if got != code {
			continue
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: want an error with %q, got %v", what, word, err)
			}
		}
		return
	}
	t.Errorf("%s: want %v, got %v", what, want, err)
}
