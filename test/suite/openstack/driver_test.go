//go:build openstack

package openstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// driver is the real program with both roles. It runs as on the server node-az1 of the bed, with only the rights that it needs.
type driver struct {
	identity   csi.IdentityClient
	controller csi.ControllerClient
	node       csi.NodeClient
	cmd        *exec.Cmd
	log        string
	socket     string
	exited     chan error
	killed     bool
	secrets    string // the file with the credentials, if cloud.conf only names it
}

func startDriver(t *testing.T, bed string, args ...string) *driver {
	t.Helper()
	return startDriverWith(t, bed, leastRights(t, bed), args...)
}

// startDriverWith is startDriver with another cloud.conf and more flags.
func startDriverWith(t *testing.T, bed, conf string, flags ...string) *driver {
	t.Helper()
	server := filepath.Join(bed, "servers", "by-name", "node-az1")
	return startProgram(t, program(t, "cinder-csi-driver"), func(d *driver) { d.stop(t); d.noSecrets(t, cmp.Or(d.secrets, conf)) }, append([]string{
		"--cloud-config=" + conf, "--cluster=bed", "--strict", "--with-capacity", "--v=4",
		"--config-drive-dir=" + filepath.Join(server, "config-drive"),
		"--sys-root=" + filepath.Join(server, "sys"), "--dev-root=" + filepath.Join(server, "dev"),
	}, flags...)...)
}

// startProgram starts a driver. End ends it after the test.
func startProgram(t *testing.T, path string, end func(*driver), flags ...string) *driver {
	t.Helper()
	dir := t.TempDir()
	d := &driver{log: filepath.Join(dir, "driver.log"), socket: filepath.Join(dir, "csi.sock"), exited: make(chan error, 1)}
	log := testenv.Value(os.Create(d.log))(t)
	defer log.Close()
	d.cmd = exec.Command(path, append([]string{"--endpoint=unix://" + d.socket}, flags...)...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	testenv.Must(t, d.cmd.Start())
	go func() { d.exited <- d.cmd.Wait() }()
	t.Cleanup(func() { end(d) })
	conn := testenv.Value(grpc.NewClient("unix://"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { conn.Close() })
	d.identity, d.controller, d.node = csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), patient(30*time.Second))
	defer cancel()
	if _, err := d.identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		text, _ := os.ReadFile(d.log)
		t.Fatalf("the driver does not begin: %v\n%s", err, text)
	}
	return d
}

// stop ends the driver as Kubernetes does and wants exit code 0.
func (d *driver) stop(t *testing.T) {
	if d.killed {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM: %v", err)
		return
	}
	if err := <-d.exited; err != nil {
		t.Errorf("want exit 0 after SIGTERM, got %v", err)
	}
	if t.Failed() {
		text, _ := os.ReadFile(d.log)
		t.Logf("the driver's log:\n%s", text)
	}
}

// kill ends the driver as an out-of-memory killer or a power cut does.
func (d *driver) kill(t *testing.T) {
	t.Helper()
	testenv.Must(t, d.cmd.Process.Kill())
	d.killed = true
	<-d.exited
}

// noSecrets fails the test if the log of the driver has a secret of cloud.conf or clouds.yaml.
func (d *driver) noSecrets(t *testing.T, path string) {
	text := testfile.Read(t, d.log)
	conf := testfile.Read(t, path)
	found := false
	for _, line := range strings.Split(string(conf), "\n") {
		key, value, isConf := strings.Cut(line, "=")
		if !isConf {
			key, value, _ = strings.Cut(line, ":")
		}
		if strings.Contains(key, "secret") || strings.Contains(key, "password") {
			found = true
			if secret := strings.Trim(strings.TrimSpace(value), `"`); bytes.Contains(text, []byte(secret)) {
				t.Errorf("the driver's log shows the value of %s", strings.TrimSpace(key))
			}
		}
	}
	if !found {
		t.Error("cloud.conf has no secret to look for: this check is blind")
	}
}

// mounted is one volume in use on a node.
type mounted struct {
	*driver
	id, server, staging, target string
	capability                  *csi.VolumeCapability
	context                     map[string]string // of the volume
}

func (m *mounted) up(t *testing.T, ctx context.Context) {
	t.Helper()
	published := testenv.Value(m.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: m.id, NodeId: m.server, VolumeCapability: m.capability}))(t)
	testenv.Value(m.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: m.id, StagingTargetPath: m.staging, VolumeCapability: m.capability, PublishContext: published.GetPublishContext(), VolumeContext: m.context,
	}))(t)
	testenv.Value(m.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: m.id, StagingTargetPath: m.staging, TargetPath: m.target, VolumeCapability: m.capability, PublishContext: published.GetPublishContext(),
	}))(t)
}

func (m *mounted) down(t *testing.T, ctx context.Context) {
	t.Helper()
	testenv.Value(m.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: m.id, TargetPath: m.target}))(t)
	testenv.Value(m.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: m.id, StagingTargetPath: m.staging}))(t)
	testenv.Value(m.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: m.id, NodeId: m.server}))(t)
}

func TestVolumeKeepsItsDataFromOneUseToTheNext(t *testing.T) {
	bed := bed(t)
	d := startDriver(t, bed)
	here := testenv.Value(d.node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t)
	if zone := here.GetAccessibleTopology().GetSegments()[contract.TopologyKey]; zone != "az1" {
		t.Errorf("want zone az1, got %v", here.GetAccessibleTopology())
	}
	for _, fsType := range []string{"ext4", "xfs", ""} {
		name := map[bool]string{true: "block", false: fsType}[fsType == ""]
		t.Run(name, func(t *testing.T) { keepsData(t, d, here, name, fsType) })
	}
}

// near asks for a volume in the zone of the node.
func (d *driver) near(t *testing.T) func(*csi.CreateVolumeRequest) {
	t.Helper()
	here := testenv.Value(d.node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t)
	return func(r *csi.CreateVolumeRequest) {
		r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{here.GetAccessibleTopology()}}
	}
}

func keepsData(t *testing.T, d *driver, here *csi.NodeGetInfoResponse, name, fsType string) {
	ctx, cancel := context.WithTimeout(t.Context(), patient(3*time.Minute))
	defer cancel()
	dir := t.TempDir()
	made := testenv.Value(d.controller.CreateVolume(ctx, csitest.Claim("bed-"+name+"-"+rand.Text(), csitest.As(csitest.Single(fsType)), d.near(t))))(t)
	m := &mounted{
		driver: d, id: made.GetVolume().GetVolumeId(), server: here.GetNodeId(), capability: csitest.Single(fsType),
		staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "target"),
	}
	testenv.Must(t, os.MkdirAll(m.staging, 0o750))
	m.up(t, ctx)
	file := m.target
	if fsType != "" {
		file = filepath.Join(m.target, "data")
	}
	want := []byte("written by the first pod " + rand.Text())
	testenv.Must(t, writeAt(file, want))
	stats, err := d.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: m.id, VolumePath: m.target})
	if err != nil || len(stats.GetUsage()) == 0 || stats.GetUsage()[0].GetTotal() < 900<<20 {
		t.Errorf("want about 1 GiB in the stats, got %v, %v", stats, err)
	}
	if _, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: m.id}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deletion of an attached volume: want FailedPrecondition, got %v", err)
	}
	m.down(t, ctx)
	m.up(t, ctx)
	got := make([]byte, len(want))
	if f, err := os.Open(file); err != nil {
		t.Fatal(err)
	} else if _, err := f.Read(got); err != nil || f.Close() != nil || !bytes.Equal(want, got) {
		t.Fatalf("want %q, got %q, %v", want, got, err)
	}
	m.down(t, ctx)
	for range 2 { // a second deletion of the same volume succeeds
		testenv.Value(d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: m.id}))(t)
	}
	_, err = d.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: m.id})
	if status.Code(err) != codes.NotFound {
		t.Errorf("want the volume gone (NotFound), got %v", err)
	}
	if _, err := os.Stat(m.target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target path is left: %v", err)
	}
}

// writeAt writes to the beginning of a file or device and waits until it is on the disk.
func writeAt(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
