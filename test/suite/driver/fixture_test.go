package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// story is a subtest in a bubble: only virtual time passes.
func story(t *testing.T, name string, play func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, play) })
}

// instance is a running driver and a client of it.
type instance struct {
	*inprocess.Driver
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
}

// start runs a driver against the cloud behind transport. It ends with the test.
func start(t *testing.T, conf []byte, transport http.RoundTripper, args ...string) *instance {
	t.Helper()
	d := inprocess.StartOn(t, conf, transport, append([]string{"--logging-format=text", "--v=0"}, args...)...)
	return &instance{d, csi.NewIdentityClient(d), csi.NewControllerClient(d), csi.NewNodeClient(d)}
}

func startWith(t *testing.T, sim *openstacksim.Sim, args ...string) *instance {
	t.Helper()
	return start(t, sim.CloudConf(inprocess.URL), memnet.Transport(sim.Handler()), args...)
}

// simulated is a cloud in which everything takes as long as on a busy real one; only virtual time passes.
func simulated() *openstacksim.Sim {
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(7 * time.Second)
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	return sim
}

// started is a driver on such a cloud.
func started(t *testing.T) (*openstacksim.Sim, *instance) {
	t.Helper()
	sim := simulated()
	return sim, startWith(t, sim)
}

// switched is a cloud that can be out of reach.
type switched struct {
	mu   sync.Mutex
	down bool
	next http.RoundTripper
}

func (s *switched) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *switched) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return s.next.RoundTrip(r)
}

// project gives a file new content as kubelet does in a mounted Secret: a directory of its own, and the link ..data moved to it.
func project(t *testing.T, path string, content []byte) {
	t.Helper()
	dir, name := filepath.Dir(path), filepath.Base(path)
	fresh := testenv.Value(os.MkdirTemp(dir, "..2026_"))(t)
	for _, step := range []func() error{
		func() error { return os.WriteFile(filepath.Join(fresh, name), content, 0o600) },
		func() error { return os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")) },
		func() error { return os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")) },
		func() error { return os.RemoveAll(path) }, // a plain file at first
		func() error { return os.Symlink(filepath.Join("..data", name), path) },
	} {
		testenv.Must(t, step())
	}
}

// Metrics of reloads.
const (
	reloaded  = `cinder_csi_config_reloads_total{result="success"}`
	unusable  = `cinder_csi_config_reloads_total{result="failure"}`
	reloadedA = `cinder_csi_config_last_reload_success_timestamp_seconds`
)

// confOf is a cloud.conf with an application credential.
func confOf(a openstacksim.ApplicationCredential) []byte {
	return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\napplication-credential-id = %s\napplication-credential-secret = %s\n", inprocess.URL, a.ID, a.Secret)
}

func another(sim *openstacksim.Sim, name string) openstacksim.ApplicationCredential {
	return sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: name, User: "demo", Project: "demo", Roles: []string{"member"}})
}

func theFirst(*openstacksim.Sim) string { return openstacksim.Default().ApplicationCredentials[0].ID }

// withPassword is a cloud.conf of the project's member: Cinder deletes more for a password than for an application credential.
func withPassword(t *testing.T) []byte {
	t.Helper()
	config := openstacksim.Default()
	for _, u := range config.Users {
		if u.Name == "demo" {
			return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\nregion = %s\nusername = %s\npassword = %s\ntenant-name = demo\nuser-domain-name = Default\ntenant-domain-name = Default\n",
				inprocess.URL, config.Region, u.Name, u.Password)
		}
	}
	t.Fatal("the simulation has no user demo")
	return nil
}

// asSidecar is a context with the sidecars' usual deadline.
func asSidecar(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantCode(t *testing.T, err error, want codes.Code, text string) {
	t.Helper()
	if status.Code(err) != want || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("want %s with %q, got %v", want, text, err)
	}
}

// servers are the first server of zone az1, and the one of az2.
func servers() (az1, az2 string) {
	all := openstacksim.Default().Servers
	return all[0].ID, all[1].ID
}

// sent is how many requests of a method went to a path that has all of some parts.
func sent(sim *openstacksim.Sim, method string, parts ...string) int {
	n := 0
	for _, r := range sim.Requests() {
		if r.Method == method && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(r.Path, part) }) {
			n++
		}
	}
	return n
}

// The requests of the sidecars, by short names.
var (
	writer       = csitest.Mounted("")
	shared       = csitest.Shared()
	claim        = csitest.Claim
	wanted       = csitest.Wanted
	multiattach  = csitest.Multiattach
	fromVolume   = csitest.FromVolume
	fromSnapshot = csitest.FromSnapshot
)

func of(key, value string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		if r.Parameters == nil {
			r.Parameters = map[string]string{}
		}
		r.Parameters[key] = value
	}
}

// snapshotRequest asks for a snapshot of a volume.
func snapshotRequest(name, id string) *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: id}
}

// archive asks for a backup of a volume.
func archive(name, id string, parameters ...string) *csi.CreateSnapshotRequest {
	req := snapshotRequest(name, id)
	req.Parameters = map[string]string{"type": "backup"}
	for i := 0; i < len(parameters); i += 2 {
		req.Parameters[parameters[i]] = parameters[i+1]
	}
	return req
}

func larger(id string, required, limit int64) *csi.ControllerExpandVolumeRequest {
	return &csi.ControllerExpandVolumeRequest{
		VolumeId: id, VolumeCapability: writer, CapacityRange: &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit},
	}
}

func changed(id string, parameters map[string]string) *csi.ControllerModifyVolumeRequest {
	return &csi.ControllerModifyVolumeRequest{VolumeId: id, MutableParameters: parameters}
}

func made(t *testing.T, d *instance, change ...func(*csi.CreateVolumeRequest)) string {
	t.Helper()
	return must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", change...))).GetVolume().GetVolumeId()
}

func publish(t *testing.T, d *instance, id, node string) error {
	t.Helper()
	return outcome(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: writer}))
}

func unpublish(t *testing.T, d *instance, id, node string) error {
	t.Helper()
	return outcome(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node}))
}

// listed is what ListVolumes says: per volume id, the nodes it is published to.
func listed(t *testing.T, d *instance) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, entry := range must[*csi.ListVolumesResponse](t)(d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{})).GetEntries() {
		all[entry.GetVolume().GetVolumeId()] = entry.GetStatus().GetPublishedNodeIds()
	}
	return all
}

// ready makes a snapshot; no answer is an error.
func ready(t *testing.T, d *instance, req *csi.CreateSnapshotRequest) *csi.Snapshot {
	t.Helper()
	p := must[*csi.CreateSnapshotResponse](t)(d.CreateSnapshot(asSidecar(t), req)).GetSnapshot()
	if !p.GetReadyToUse() {
		t.Fatalf("what was returned is not ready: %v", p)
	}
	return p
}

// pursued asks for a snapshot or backup as external-snapshotter does: again after an error that is not final. It never
// replaces the first ID that it gets, so the snapshot or backup of that ID must be ready.
func pursued(t *testing.T, d *instance, req *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	t.Helper()
	for range 1000 {
		got, err := d.CreateSnapshot(asSidecar(t), req)
		switch code := status.Code(err); {
		case err == nil && !got.GetSnapshot().GetReadyToUse():
			t.Fatalf("what was returned is not ready: %v", got)
		case err == nil:
			return got.GetSnapshot(), nil
		case code != codes.Canceled && code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Aborted:
			return nil, err
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("it is never ready")
	return nil, nil
}

// begunSnapshot asks once for what takes longer than one call waits, and gives its ID, which only Cinder's list tells.
func begunSnapshot(t *testing.T, d *instance, req *csi.CreateSnapshotRequest, code codes.Code, text string) string {
	t.Helper()
	before := shots(t, d)
	_, err := d.CreateSnapshot(asSidecar(t), req)
	wantCode(t, err, code, text)
	for id := range shots(t, d) {
		if _, known := before[id]; !known {
			if req.GetParameters()["type"] != "backup" {
				return id
			}
			if strings.Contains(err.Error(), id) { // not its temporary snapshot
				return id
			}
		}
	}
	t.Fatal("nothing was begun")
	return ""
}

// newBackup makes a backup of a volume.
func newBackup(t *testing.T, d *instance, name, volume string, parameters ...string) string {
	t.Helper()
	return must[*csi.Snapshot](t)(pursued(t, d, archive(name, volume, parameters...))).GetSnapshotId()
}

// shots is what ListSnapshots says: per snapshot id, whether it is ready.
func shots(t *testing.T, d *instance) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, entry := range must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{})).GetEntries() {
		all[entry.GetSnapshot().GetSnapshotId()] = entry.GetSnapshot().GetReadyToUse()
	}
	return all
}

// readiness asks ListSnapshots for one handle: whether it is listed, and ready.
func readiness(t *testing.T, d *instance, id string) (listed, ready bool) {
	t.Helper()
	entries := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: id})).GetEntries()
	return len(entries) == 1, len(entries) == 1 && entries[0].GetSnapshot().GetReadyToUse()
}

// can reports whether the controller advertises a capability.
func can(t *testing.T, d *instance, want csi.ControllerServiceCapability_RPC_Type) bool {
	t.Helper()
	got := must[*csi.ControllerGetCapabilitiesResponse](t)(d.ControllerGetCapabilities(context.Background(), &csi.ControllerGetCapabilitiesRequest{}))
	for _, c := range got.GetCapabilities() {
		if c.GetRpc().GetType() == want {
			return true
		}
	}
	return false
}
