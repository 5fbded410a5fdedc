//go:build openstack

package guests

import (
	"crypto/rand"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/tools/image"
)

// node is a guest with the node role of the driver in it.
type node struct {
	*guest.Agent
	csi.NodeClient
	r      *region
	server string
	flags  []string // of the driver, beside those that it always has
	conn   *grpc.ClientConn
	info   *csi.NodeGetInfoResponse
}

const (
	driverLog = "/run/driver.log"
	cloudConf = "/etc/cloud.conf"
)

// node waits for the guest of a server and starts the driver in it.
func (r *region) node(t *testing.T, server string, flags ...string) *node {
	t.Helper()
	n := &node{r: r, server: server, flags: flags}
	n.connect(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the console of %s: %s\nits driver's log: %s", server, n.console(), n.try("tail -n 60 "+driverLog))
		}
		n.disconnect()
	})
	n.startDriver(t)
	return n
}

// connect connects to the agent of the guest: after a reboot it is another one.
func (n *node) connect(t *testing.T) {
	t.Helper()
	a, err := guest.Connect(filepath.Join(n.r.bed, "run", "guests", n.server+".sock"), patience, n.console)
	must(t, "connect to the guest of server "+n.server, err)
	n.Agent = a
}

func (n *node) disconnect() {
	if n.conn != nil {
		n.conn.Close()
	}
	n.Agent.Close()
}

// again connects to a guest that was started again, and starts the driver in it.
func (n *node) again(t *testing.T) {
	t.Helper()
	n.disconnect()
	n.connect(t)
	n.startDriver(t)
}

func (n *node) console() string {
	files, _ := filepath.Glob(filepath.Join(n.r.bed, "state", "nova-*", "instances", n.server, "console.log"))
	out, _ := exec.Command("tail", append([]string{"-c", "3000"}, files...)...).CombinedOutput()
	return string(out)
}

// startDriver starts the node role, with the environment of its image. The guest runs on after a test, so an earlier driver may be there.
func (n *node) startDriver(t *testing.T) {
	t.Helper()
	n.sh(t, "grep -q ' /var/lib/kubelet ' /proc/mounts || mount LABEL="+guest.SystemLabel+" /var/lib/kubelet; touch "+cloudConf)
	n.sh(t, "while p=$(pidof cinder-csi-driver); do kill $p; usleep 100000; done")
	command := append([]string{"/busybox/env", "-i"}, image.Env...)
	command = append(command, "/usr/bin/cinder-csi-driver", "--endpoint=unix://"+agent.Socket, "--cloud-config="+cloudConf,
		"--provide-controller-service=false", "--logging-format=json", "--v=4")
	_, err := n.Start(agent.Command{Args: append(command, n.flags...), Log: driverLog})
	must(t, "start the driver in the guest", err)
	n.conn, err = grpc.NewClient("passthrough:///guest", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.DialDriver))
	must(t, "connect to the driver in the guest", err)
	n.NodeClient = csi.NewNodeClient(n.conn)
	_, err = csi.NewIdentityClient(n.conn).Probe(within(t, 2*time.Minute), &csi.ProbeRequest{}, grpc.WaitForReady(true))
	must(t, "start the driver in the guest", err)
	n.info, err = n.NodeGetInfo(within(t, time.Minute), &csi.NodeGetInfoRequest{})
	must(t, "ask the guest which server it is", err)
	if n.info.GetNodeId() != n.server {
		t.Fatalf("want the guest to know that it is server %s, got %s", n.server, n.info.GetNodeId())
	}
}

// sh runs a script in the guest, which must succeed, and returns its output.
func (n *node) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := n.Shell(script)
	must(t, "run a script", err)
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

// claim is a volume and its paths on a node. Without fsType it is a raw block volume.
type claim struct {
	id, fsType string
	shared     bool
	context    map[string]string
}

func (c claim) staging() string {
	return "/var/lib/kubelet/plugins/kubernetes.io/csi/cinder/" + c.id + "/globalmount"
}
func (c claim) target() string { return "/var/lib/kubelet/pods/" + c.id + "/mount" }

func (c claim) capability() *csi.VolumeCapability {
	v := csitest.Single(c.fsType)
	if c.shared {
		v.AccessMode = csitest.Shared().GetAccessMode()
	}
	return v
}

// create makes a volume through the driver until the test ends.
func (r *region) create(t *testing.T, near *node, c claim, gib int64, change ...func(*csi.CreateVolumeRequest)) claim {
	t.Helper()
	made, err := r.CreateVolume(within(t, patience), near.request(c, gib, change...))
	must(t, "create a volume", err)
	c.id, c.context = made.GetVolume().GetVolumeId(), maps.Clone(made.GetVolume().GetVolumeContext())
	t.Cleanup(func() {
		eventually(t, "volume "+c.id+" is deleted", func() error {
			return csitest.Outcome(r.DeleteVolume(within(t, time.Minute), &csi.DeleteVolumeRequest{VolumeId: c.id}))
		})
	})
	return c
}

func ofType(name string) func(*csi.CreateVolumeRequest) {
	return func(request *csi.CreateVolumeRequest) { request.Parameters = map[string]string{"type": name} }
}

func (r *region) expand(t *testing.T, c claim, size int64) error {
	t.Helper()
	return csitest.Outcome(r.ControllerExpandVolume(within(t, patience), &csi.ControllerExpandVolumeRequest{
		VolumeId: c.id, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeCapability: c.capability(),
	}))
}

func (n *node) expand(t *testing.T, c claim, size int64) error {
	t.Helper()
	return csitest.Outcome(n.NodeExpandVolume(within(t, patience), &csi.NodeExpandVolumeRequest{
		VolumeId: c.id, VolumePath: c.target(), StagingTargetPath: c.staging(), VolumeCapability: c.capability(), CapacityRange: &csi.CapacityRange{RequiredBytes: size},
	}))
}

// snapshot makes a snapshot until the test ends.
func (r *region) snapshot(t *testing.T, c claim) string {
	t.Helper()
	made, err := r.CreateSnapshot(within(t, patience), &csi.CreateSnapshotRequest{Name: "guests-" + c.id, SourceVolumeId: c.id})
	must(t, "create a snapshot", err)
	id := made.GetSnapshot().GetSnapshotId()
	t.Cleanup(func() {
		_, err := r.DeleteSnapshot(within(t, patience), &csi.DeleteSnapshotRequest{SnapshotId: id})
		must(t, "delete the snapshot", err)
	})
	return id
}

// request is for a new volume that the node can have.
func (n *node) request(c claim, gib int64, change ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	return csitest.Claim("guests-"+rand.Text(), append([]func(*csi.CreateVolumeRequest){csitest.As(c.capability()), func(r *csi.CreateVolumeRequest) {
		r.CapacityRange.RequiredBytes = gib << 30
		r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{n.info.GetAccessibleTopology()}}
	}}, change...)...)
}

// attach is what Kubernetes does before a node can stage the volume.
func (n *node) attach(t *testing.T, c claim) error {
	t.Helper()
	return csitest.Outcome(n.r.ControllerPublishVolume(within(t, patience), &csi.ControllerPublishVolumeRequest{VolumeId: c.id, NodeId: n.server, VolumeCapability: c.capability()}))
}

func (n *node) detach(t *testing.T, c claim) error {
	t.Helper()
	return csitest.Outcome(n.r.ControllerUnpublishVolume(within(t, patience), &csi.ControllerUnpublishVolumeRequest{VolumeId: c.id, NodeId: n.server}))
}

func (n *node) stage(t *testing.T, c claim) error {
	t.Helper()
	return csitest.Outcome(n.NodeStageVolume(within(t, 2*time.Minute), &csi.NodeStageVolumeRequest{
		VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: c.capability(), VolumeContext: c.context,
	}))
}

func (n *node) publish(t *testing.T, c claim) error {
	t.Helper()
	return csitest.Outcome(n.NodePublishVolume(within(t, 2*time.Minute), &csi.NodePublishVolumeRequest{
		VolumeId: c.id, StagingTargetPath: c.staging(), TargetPath: c.target(), VolumeCapability: c.capability(), VolumeContext: c.context,
	}))
}

// release unpublishes and unstages.
func (n *node) release(t *testing.T, c claim) error {
	t.Helper()
	_, unpublish := n.NodeUnpublishVolume(within(t, 2*time.Minute), &csi.NodeUnpublishVolumeRequest{VolumeId: c.id, TargetPath: c.target()})
	_, unstage := n.NodeUnstageVolume(within(t, 2*time.Minute), &csi.NodeUnstageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging()})
	return errors.Join(unpublish, unstage)
}

// use brings a volume to a pod. When the test ends, it takes it away, unless that is done.
func (n *node) use(t *testing.T, c claim) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() && n.r.status(t, c.id) != "gone" {
			_, _ = n.release(t, c), n.detach(t, c)
		}
	})
	timed(t, "attach", func() error { return n.attach(t, c) })
	timed(t, "stage", func() error { return n.stage(t, c) })
	timed(t, "publish", func() error { return n.publish(t, c) })
}

// leave takes a volume from a pod and from the server.
func (n *node) leave(t *testing.T, c claim) {
	t.Helper()
	timed(t, "unpublish and unstage", func() error { return n.release(t, c) })
	timed(t, "detach", func() error { return n.detach(t, c) })
}

// timed is a step of a story, which must succeed. The log has its time.
func timed(t *testing.T, what string, step func() error) {
	t.Helper()
	began := time.Now()
	must(t, what, step())
	t.Logf("%-40s %6.1f s", what, time.Since(began).Seconds())
}
