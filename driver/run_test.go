package driver

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

const cloudURL = "http://cloud.test"

// instance is a running driver and a client of it.
type instance struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
	stop    context.CancelFunc
	ended   chan error
	log     *testenv.Log
	conf    string        // path of its cloud.conf
	changed chan struct{} // tells it that files have changed
	web     *memnet.Listener
}

// simulated is a cloud in which everything takes as long as on a busy real one; only virtual time passes.
func simulated() *openstacksim.Sim {
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(7 * time.Second)
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	return sim
}

func configure(t *testing.T, conf []byte, args ...string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	if err := os.WriteFile(path, conf, 0o600); err != nil {
		t.Fatal(err)
	}
	var cfg config.Config
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	cfg.Bind(flags)
	if err := flags.Parse(append([]string{"--endpoint=unix:///unused", "--cloud-config=" + path, "--cluster=test"}, args...)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start runs a driver against the cloud behind transport. It ends with the test.
func start(t *testing.T, conf []byte, transport http.RoundTripper, args ...string) *instance {
	t.Helper()
	cfg := configure(t, conf, args...)
	ctx, stop := context.WithCancel(t.Context())
	d := &instance{stop: stop, ended: make(chan error, 1), log: &testenv.Log{}, conf: cfg.CloudConfig[0], changed: make(chan struct{}, 1), web: memnet.Listen()}
	listener := memnet.Listen()
	go func() {
		d.ended <- Run(ctx, cfg, Dependencies{
			Version: "test", Stderr: d.log, Listener: listener, Transport: transport, Env: func(string) string { return "" }, Web: d.web,
			Watch: func(context.Context, []string) (<-chan struct{}, error) { return d.changed, nil }, // inotify knows no virtual time
		})
	}()
	conn, err := grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	d.IdentityClient, d.ControllerClient, d.NodeClient = csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	t.Cleanup(func() {
		stop()
		_ = conn.Close()
		if strings.Contains(d.log.String(), "sim-appcred-secret") {
			t.Error("the log holds the credential's secret")
		}
	})
	return d
}

func startWith(t *testing.T, sim *openstacksim.Sim, args ...string) *instance {
	t.Helper()
	return start(t, sim.CloudConf(cloudURL), memnet.Transport(sim.Handler()), args...)
}

// asSidecar is a context with the sidecars' usual deadline.
func asSidecar(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var writer = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func claim(name string, change ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	req := &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{writer}, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}}
	for _, c := range change {
		c(req)
	}
	return req
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

func servers() (az1, az2 string) {
	all := openstacksim.Default().Servers
	return all[0].ID, all[1].ID
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

func TestVolumeLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		az1, az2 := servers()
		v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"type": "fast"}
			r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az2"}}}}
		}))).GetVolume()
		if got := v.GetAccessibleTopology()[0].GetSegments()["topology.cinder.csi.openstack.org/zone"]; got != "az2" || v.GetCapacityBytes() != 1<<30 {
			t.Errorf("got %v", v)
		}
		id := v.GetVolumeId()
		publish := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az2, VolumeCapability: writer}
		for range 2 {
			must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, publish))
		}
		if diff := cmp.Diff(map[string][]string{id: {az2}}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		_, err := d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer})
		wantCode(t, err, codes.FailedPrecondition, az2)
		_, err = d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition, az2)
		for range 2 {
			must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az2}))
		}
		if diff := cmp.Diff(map[string][]string{id: nil}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		for range 2 {
			must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
		}
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		_, err = d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.NotFound, id)
	})
}

func TestExpandADetachedAndAnAttachedVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		grow := func(gib int64) {
			t.Helper()
			got := must[*csi.ControllerExpandVolumeResponse](t)(d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
				VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: gib << 30}, VolumeCapability: writer,
			}))
			if got.GetCapacityBytes() != gib<<30 || !got.GetNodeExpansionRequired() {
				t.Errorf("got %v", got)
			}
		}
		grow(2)
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		grow(3)
		grow(3)
		_, err := d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30, LimitBytes: 2 << 30}})
		wantCode(t, err, codes.OutOfRange, "3 GiB")
		_, err = d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 50}})
		wantCode(t, err, codes.ResourceExhausted, "quota")
		if got := must[*csi.ControllerGetVolumeResponse](t)(d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})); got.GetVolume().GetCapacityBytes() != 3<<30 {
			t.Errorf("got %v", got)
		}
	})
}

func TestACloneIsCreatedInTheZoneOfItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		source := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az2"} }))).GetVolume()
		clone := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-2", func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source.GetVolumeId()}}}
		}))).GetVolume()
		if diff := cmp.Diff(source.GetAccessibleTopology()[0].GetSegments(), clone.GetAccessibleTopology()[0].GetSegments()); diff != "" || clone.GetVolumeContext()["cinder.csi.openstack.org/resizeRequired"] != "true" {
			t.Error(clone, diff)
		}
	})
}

func TestAFailedCreateReturnsTheReasonAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		if code := status.Code(err); code != codes.ResourceExhausted && code != codes.FailedPrecondition { // final: nothing exists
			t.Errorf("got %v", err)
		}
		wantCode(t, err, status.Code(err), "weighted backend")
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
	})
}

// Whatever becomes of the POST's answer, the retry finds one volume and makes no second.
func TestALostAnswerLosesNoVolume(t *testing.T) {
	for name, fault := range map[string]openstacksim.Fault{
		"dropped":          {After: true, Drop: true},
		"a proxy's 504":    {After: true, Status: http.StatusGatewayTimeout},
		"dropped before":   {Drop: true},
		"an early 503":     {Status: http.StatusServiceUnavailable},
		"a rate limit":     {Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}},
		"out of patience":  {Delay: 5 * time.Minute},
		"late but carried": {After: true, Delay: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				fault.Method, fault.Path, fault.Times = http.MethodPost, "/volume/v3/*/volumes", 1
				sim.SetFault(fault)
				d := startWith(t, sim)
				for range 2 {
					_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
					if err == nil {
						break
					}
					if !slices.Contains([]codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}, status.Code(err)) {
						t.Errorf("a final answer although a volume may exist: %v", err)
					}
				}
				time.Sleep(10 * time.Minute) // virtual: what was late has happened
				must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
				if all := listed(t, d); len(all) != 1 {
					t.Errorf("want one volume, got %v", all)
				}
			})
		})
	}
}

func TestACreateResumesAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateVolume, 5*time.Minute)
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.DeadlineExceeded, "")
		synctest.Wait() // the server's side ends too
		first := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		if all := listed(t, d); len(all) != 1 || all[first] != nil {
			t.Errorf("want %s alone, got %v", first, all)
		}
	})
}

// makeOne lets two replicas make what has one name, each until it has it, and counts what there is in the end.
func makeOne(t *testing.T, one, other *instance, try func(d *instance) (id string, made bool), count func() int) {
	t.Helper()
	ids := make(chan string, 2)
	for _, d := range []*instance{one, other} {
		go func() {
			for {
				if id, made := try(d); made {
					ids <- id
					return
				}
				time.Sleep(time.Second)
			}
		}()
	}
	first, second := <-ids, <-ids
	time.Sleep(time.Minute) // virtual: the duplicate's deletion ends
	if n := count(); first != second || n != 1 {
		t.Errorf("got %s and %s; there are %d", first, second, n)
	}
}

func TestTwoReplicasCreateOneVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, other := startWith(t, sim), startWith(t, sim)
		makeOne(t, one, other, func(d *instance) (string, bool) {
			v, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
			return v.GetVolume().GetVolumeId(), err == nil
		}, func() int { return len(listed(t, one)) })
	})
}

func TestAnAttachThatFailsOnTheHostIsReportedAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Times: 1})
		publish := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}
		began := time.Now()
		_, err := d.ControllerPublishVolume(ctx, publish)
		wantCode(t, err, codes.Aborted, "nova-compute")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v to notice", took)
		}
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, publish))
	})
}

func TestRefusalsOfTheCloud(t *testing.T) {
	az1, _ := servers()
	for name, test := range map[string]struct {
		call func(ctx context.Context, d *instance) error
		code codes.Code
		text string
	}{
		"unknown zone": {func(ctx context.Context, d *instance) error {
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "moon"} }))
			return err
		}, codes.InvalidArgument, "moon"},
		"unknown type": {func(ctx context.Context, d *instance) error {
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"type": "gold"} }))
			return err
		}, codes.InvalidArgument, "gold"},
		"quota": {func(ctx context.Context, d *instance) error {
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				r.Parameters, r.CapacityRange.RequiredBytes = map[string]string{"type": "fast"}, 2000<<30
			}))
			return err
		}, codes.ResourceExhausted, "gigabytes_fast"},
		"no source": {func(ctx context.Context, d *instance) error {
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: az1}}}
			}))
			return err
		}, codes.NotFound, az1},
		"no volume to attach": {func(ctx context.Context, d *instance) error {
			_, err := d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: az1, NodeId: az1, VolumeCapability: writer})
			return err
		}, codes.NotFound, az1},
		"no server": {func(ctx context.Context, d *instance) error {
			v, err := d.CreateVolume(ctx, claim("a"))
			if err != nil {
				return err
			}
			_, err = d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: v.GetVolume().GetVolumeId(), NodeId: v.GetVolume().GetVolumeId(), VolumeCapability: writer})
			return err
		}, codes.NotFound, "server"},
		"a name that differs": {func(ctx context.Context, d *instance) error {
			if _, err := d.CreateVolume(ctx, claim("a")); err != nil {
				return err
			}
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 9 << 30 }))
			return err
		}, codes.AlreadyExists, ""},
		"sharing a plain type": {func(ctx context.Context, d *instance) error {
			_, err := d.CreateVolume(ctx, claim("a", func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{{
					AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
					AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
				}}
			}))
			return err
		}, codes.InvalidArgument, "multiattach"},
		"bad token": {func(ctx context.Context, d *instance) error {
			_, err := d.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: az1})
			return err
		}, codes.Aborted, "token"},
		"not implemented": {func(ctx context.Context, d *instance) error {
			_, err := d.GetCapacity(ctx, &csi.GetCapacityRequest{})
			return err
		}, codes.Unimplemented, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wantCode(t, test.call(asSidecar(t), startWith(t, simulated())), test.code, test.text)
			})
		})
	}
}

func TestTwoServersShareABlockVolumeOfAMultiattachType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		shared := &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		}
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities, r.Parameters = []*csi.VolumeCapability{shared}, map[string]string{"type": "multiattach"}
		}))).GetVolume().GetVolumeId()
		az1, az2 := servers()
		for _, node := range []string{az1, az2} {
			must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: shared}))
		}
		if nodes := listed(t, d)[id]; len(nodes) != 2 {
			t.Errorf("published to %v", nodes)
		}
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		if diff := cmp.Diff([]string{az2}, listed(t, d)[id]); diff != "" {
			t.Error("-want +got\n", diff)
		}
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id}))
	})
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

// The driver stays alive and ready while Keystone is down at its start, and while the whole cloud is down later. RPCs return Unavailable.
func TestTheDriverSurvivesAnOutageOfKeystoneAtTheStartAndOfTheCloudLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		wire := &switched{down: true, next: memnet.Transport(sim.Handler())}
		d := start(t, sim.CloudConf(cloudURL), wire)
		alive := func(readyz, startupz int) {
			t.Helper()
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": readyz, "/startupz": startupz} {
				if page, code := d.get(t, path); code != want {
					t.Errorf("%s: want %d, got %d: %s", path, want, code, page)
				}
			}
			wantReady := startupz == http.StatusOK // at the start the sidecars wait; see TestSidecarsWaitForTheFirstLoginButNotUntilARestart
			if ready := must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{})); ready.GetReady().GetValue() != wantReady {
				t.Errorf("want ready %t, got %v", wantReady, ready)
			}
		}
		alive(http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unavailable, "Keystone")
		wire.set(false)
		time.Sleep(10 * time.Second) // virtual
		alive(http.StatusOK, http.StatusOK)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		wire.set(true)
		alive(http.StatusServiceUnavailable, http.StatusOK)
		for name, call := range map[string]func() error{
			"create": func() error { _, err := d.CreateVolume(asSidecar(t), claim("pvc-2")); return err },
			"get": func() error {
				_, err := d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: id})
				return err
			},
			"delete": func() error {
				_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
				return err
			},
			"list": func() error { _, err := d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{}); return err },
		} {
			if err := call(); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: want Unavailable, got %v", name, err)
			}
		}
		time.Sleep(time.Hour) // virtual
		wire.set(false)
		alive(http.StatusOK, http.StatusOK)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2")))
	})
}

// With wrong credentials the sidecars of a pod do not compete with those of the old pod at first. But a driver whose probe fails for two minutes would be
// restarted.
func TestSidecarsWaitForTheFirstLoginButNotUntilARestart(t *testing.T) {
	for name, test := range map[string]struct {
		secret string
		want   []bool // after 1, 60, 89 and 91 seconds
	}{
		"wrong credentials": {"wrong", []bool{false, false, false, true}},
		"right credentials": {"sim-appcred-secret", []bool{true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				conf := bytes.Replace(sim.CloudConf(cloudURL), []byte("sim-appcred-secret"), []byte(test.secret), 1)
				d := start(t, conf, memnet.Transport(sim.Handler()))
				began := time.Now()
				for i, after := range []time.Duration{time.Second, time.Minute, 89 * time.Second, 91 * time.Second} {
					time.Sleep(time.Until(began.Add(after))) // virtual
					answer := must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{}))
					if got := answer.GetReady().GetValue(); got != test.want[i] {
						t.Errorf("after %s: want ready %t, got %t", after, test.want[i], got)
					}
				}
			})
		})
	}
}

func TestWrongCredentialsAreLoggedAndDoNotEndTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		conf := bytes.Replace(sim.CloudConf(cloudURL), []byte("sim-appcred-secret"), []byte("wrong"), 1)
		d := start(t, conf, memnet.Transport(sim.Handler()))
		_, err := d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{})
		wantCode(t, err, codes.Unauthenticated, "credentials")
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unavailable, "credentials") // an earlier call may have left a volume
		if !strings.Contains(d.log.String(), "cannot log in") {
			t.Errorf("the log does not say so: %s", d.log)
		}
	})
}

// SIGTERM ends the context of Run.
func TestRPCsInProgressFinishWhenTheDriverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		made := make(chan error, 1)
		go func() {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
			made <- err
		}()
		time.Sleep(3 * time.Second) // virtual: the volume is being made
		d.stop()
		if err := <-made; err != nil {
			t.Errorf("the RPC under way: %v", err)
		}
		if err := <-d.ended; err != nil {
			t.Errorf("the driver: %v", err)
		}
	})
}

func TestRPCsThatTakeTooLongAtTheEndOfTheDriverAreNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateVolume, time.Hour)
		d := startWith(t, sim, "--drain-timeout=5s")
		made := make(chan error, 1)
		go func() {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
			made <- err
		}()
		time.Sleep(3 * time.Second)
		stopped := time.Now()
		d.stop()
		if err := <-made; !slices.Contains([]codes.Code{codes.Canceled, codes.Unavailable}, status.Code(err)) {
			t.Errorf("the RPC under way: %v", err)
		}
		if err := <-d.ended; err != nil || time.Since(stopped) != 5*time.Second {
			t.Errorf("the driver: %v after %v", err, time.Since(stopped))
		}
	})
}

func TestANodeCallsOnlyTheMetadataService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, nil, memnet.Transport(sim.Handler()), "--provide-controller-service=false", "--metadata-url="+cloudURL+"/metadata/node-az2",
			"--additional-topology=topology.kubernetes.io/region=R", "--sys-root="+t.TempDir(), "--dev-root="+t.TempDir())
		got := must[*csi.NodeGetInfoResponse](t)(d.NodeGetInfo(asSidecar(t), &csi.NodeGetInfoRequest{}))
		_, az2 := servers()
		want := map[string]string{"topology.cinder.csi.openstack.org/zone": "az2", "topology.kubernetes.io/region": "R"}
		if diff := cmp.Diff(want, got.GetAccessibleTopology().GetSegments()); diff != "" || got.GetNodeId() != az2 {
			t.Errorf("node %s, -want +got\n%s", got.GetNodeId(), diff)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unimplemented, "")
	})
}

func TestTwoCloudsInOneController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		plain := string(sim.CloudConf(cloudURL))
		conf := strings.Replace(plain, "[Global]", `[Global "east"]`, 1) + strings.Replace(plain, "[Global]", `[Global "west"]`, 1)
		d := start(t, []byte(conf), memnet.Transport(sim.Handler()), "--cloud-name=east", "--cloud-name=west")
		in := func(name string) func(*csi.CreateVolumeRequest) {
			return func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"cloud": name} }
		}
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", in("west"))))
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-2"))
		wantCode(t, err, codes.InvalidArgument, `"east", "west"`)
	})
}

func TestWhatKeepsTheDriverFromStarting(t *testing.T) {
	good := openstacksim.New(openstacksim.Default()).CloudConf(cloudURL)
	for name, test := range map[string]struct {
		conf    string
		args    []string
		problem string
	}{
		"no such section":             {string(good), []string{"--cloud-name=moon"}, "moon"},
		"not an INI file":             {"[Global\n", nil, "line 1"},
		"no authentication URL":       {"[Global]\nusername=x\n", nil, ""},
		"a bad option":                {string(good) + "[BlockStorage]\nignore-volume-az=maybe\n", nil, "ignore-volume-az"},
		"an unknown key strictly":     {string(good) + "[BlockStorage]\nignore-volume-as=true\n", []string{"--strict"}, "did you mean ignore-volume-az?"},
		"an address that cannot be":   {string(good), []string{"--endpoint=http://x"}, "http"},
		"no flags that make sense":    {string(good), []string{"--default-fs-type=ntfs"}, "ntfs"},
		"root for whoever connects":   {string(good), []string{"--endpoint=TCP://127.0.0.1:0"}, "--provide-node-service=false"},
		"a monitoring address in use": {string(good), []string{"--http-endpoint=256.0.0.1:1", "--endpoint=tcp://127.0.0.1:0", "--provide-node-service=false"}, "--http-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			sim := openstacksim.New(openstacksim.Default())
			log := &testenv.Log{}
			err := Run(t.Context(), configure(t, []byte(test.conf), test.args...), Dependencies{Stderr: log, Transport: memnet.Transport(sim.Handler()), Env: func(string) string { return "" }})
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("want an error with %q, got %v", test.problem, err)
			}
		})
	}
	cfg := configure(t, good)
	cfg.CloudConfig = []string{filepath.Join(t.TempDir(), "gone")}
	if err := Run(t.Context(), cfg, Dependencies{Stderr: &testenv.Log{}}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a missing cloud.conf: %v", err)
	}
}

func TestUnknownKeysOfCloudConfAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, append(sim.CloudConf(cloudURL), "[BlockStorage]\nignore-volume-as=true\n[LoadBalancer]\nuse-octavia=true\n"...), memnet.Transport(sim.Handler()))
		must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{}))
		if log := d.log.String(); strings.Count(log, "did you mean ignore-volume-az?") != 1 || strings.Contains(log, "octavia") {
			t.Error(log)
		}
	})
}

// [Global] is described in config, for documentation and the generator, and read in cloud.
func TestTheDescribedOptionsOfGlobalAreTheOnesThatAreRead(t *testing.T) {
	var described []string
	for _, o := range config.Options {
		if o.Section == config.Global {
			described = append(described, o.Key)
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(slices.Sorted(slices.Values(cloud.ConfKeys())), described); diff != "" {
		t.Error("-read +described\n", diff)
	}
}
