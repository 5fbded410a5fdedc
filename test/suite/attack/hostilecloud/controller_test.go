package hostilecloud

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// controller is a client of a driver's controller.
type controller struct {
	csi.ControllerClient
	log *testenv.Log
}

// configured parses the flags of a driver as its main does.
func configured(args ...string) (config.Config, error) {
	var cfg config.Config
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	cfg.Bind(flags)
	return cfg, flags.Parse(args)
}

// startInMemory runs a driver against the hostile cloud, over memory.
func startInMemory(t *testing.T, h *hostile, args ...string) *controller {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, path, h.sim.CloudConf(cloudURL), 0o600)
	cfg := testenv.Value(configured(append([]string{"--endpoint=unix:///unused", "--cloud-config=" + path, "--cluster=test", "--provide-node-service=false", "--with-capacity", "--v=4"}, args...)...))(t)
	ctx, stop := context.WithCancel(t.Context())
	log, listener, ended := &testenv.Log{}, memnet.Listen(), make(chan error, 1)
	go func() {
		ended <- driver.Run(ctx, cfg, driver.Dependencies{
			Version: "test", Stderr: log, Listener: listener, Transport: h, Env: func(string) string { return "" },
			Watch: func(context.Context, []string) (<-chan struct{}, error) { return nil, nil }, // inotify knows no virtual time
		})
	}()
	conn := testenv.Value(grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) })))(t)
	t.Cleanup(func() {
		stop()
		_ = conn.Close()
		if err := <-ended; err != nil {
			t.Errorf("the driver ended with %v", err)
		}
	})
	return &controller{ControllerClient: csi.NewControllerClient(conn), log: log}
}

// objects are the objects that exist when the cloud becomes hostile.
type objects struct{ free, attached, snapshot, server string }

// prepare creates them while the cloud is honest.
func (c *controller) prepare(ctx context.Context) (o objects, err error) {
	o.server = openstacksim.Default().Servers[0].ID
	for name, to := range map[string]*string{"pvc-free": &o.free, "pvc-attached": &o.attached} {
		v, err := c.CreateVolume(ctx, csitest.Claim(name))
		if err != nil {
			return o, err
		}
		*to = v.GetVolume().GetVolumeId()
	}
	if _, err := c.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: o.attached, NodeId: o.server, VolumeCapability: csitest.Mounted("")}); err != nil {
		return o, err
	}
	p, err := c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: o.free})
	o.snapshot = p.GetSnapshot().GetSnapshotId()
	return o, err
}

// call is one RPC of the controller service.
type call struct {
	name string
	send func(ctx context.Context, c csi.ControllerClient, o objects) (any, error)
}

func rpc[Req, Resp any](name string, method func(csi.ControllerClient, context.Context, Req, ...grpc.CallOption) (Resp, error), request func(objects) Req) call {
	return call{name, func(ctx context.Context, c csi.ControllerClient, o objects) (any, error) {
		return method(c, ctx, request(o))
	}}
}

// calls are all RPCs that call a cloud. The RPCs that delete the objects of the others come last.
var calls = []call{
	rpc("CreateVolume", csi.ControllerClient.CreateVolume, func(objects) *csi.CreateVolumeRequest { return csitest.Claim("pvc-new") }),
	rpc("CreateVolume from a class", csi.ControllerClient.CreateVolume, func(objects) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc-typed", func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"type": "fast", "scheduler-hints": `{"same_host": "pvc-free"}`}
		})
	}),
	rpc("CreateVolume from a snapshot", csi.ControllerClient.CreateVolume, func(o objects) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc-restored", csitest.FromSnapshot(o.snapshot))
	}),
	rpc("CreateVolume from a volume", csi.ControllerClient.CreateVolume, func(o objects) *csi.CreateVolumeRequest {
		return csitest.Claim("pvc-cloned", csitest.FromVolume(o.free))
	}),
	rpc("ControllerPublishVolume", csi.ControllerClient.ControllerPublishVolume, func(o objects) *csi.ControllerPublishVolumeRequest {
		return &csi.ControllerPublishVolumeRequest{VolumeId: o.free, NodeId: o.server, VolumeCapability: csitest.Mounted("")}
	}),
	rpc("ControllerGetVolume", csi.ControllerClient.ControllerGetVolume, func(o objects) *csi.ControllerGetVolumeRequest {
		return &csi.ControllerGetVolumeRequest{VolumeId: o.free}
	}),
	rpc("ControllerGetVolumeHealth", csi.ControllerClient.ControllerGetVolumeHealth, func(o objects) *csi.ControllerGetVolumeHealthRequest {
		return &csi.ControllerGetVolumeHealthRequest{VolumeId: o.free}
	}),
	rpc("ControllerListVolumeHealth", csi.ControllerClient.ControllerListVolumeHealth, func(objects) *csi.ControllerListVolumeHealthRequest {
		return &csi.ControllerListVolumeHealthRequest{}
	}),
	rpc("ListVolumes", csi.ControllerClient.ListVolumes, func(objects) *csi.ListVolumesRequest { return &csi.ListVolumesRequest{} }),
	rpc("ListVolumes by pages", csi.ControllerClient.ListVolumes, func(o objects) *csi.ListVolumesRequest {
		return &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: o.attached + ",1000000000000000"}
	}),
	rpc("ListSnapshots", csi.ControllerClient.ListSnapshots, func(objects) *csi.ListSnapshotsRequest { return &csi.ListSnapshotsRequest{} }),
	rpc("GetSnapshot", csi.ControllerClient.GetSnapshot, func(o objects) *csi.GetSnapshotRequest {
		return &csi.GetSnapshotRequest{SnapshotId: o.snapshot}
	}),
	rpc("CreateSnapshot", csi.ControllerClient.CreateSnapshot, func(o objects) *csi.CreateSnapshotRequest {
		return &csi.CreateSnapshotRequest{Name: "snap-new", SourceVolumeId: o.free}
	}),
	rpc("CreateSnapshot as a backup", csi.ControllerClient.CreateSnapshot, func(o objects) *csi.CreateSnapshotRequest {
		return &csi.CreateSnapshotRequest{Name: "backup-new", SourceVolumeId: o.free, Parameters: map[string]string{"type": "backup", contract.ParameterIncremental: "true"}}
	}),
	rpc("GetCapacity", csi.ControllerClient.GetCapacity, func(objects) *csi.GetCapacityRequest {
		return &csi.GetCapacityRequest{VolumeCapabilities: []*csi.VolumeCapability{csitest.Mounted("")}, Parameters: map[string]string{"type": "fast"}}
	}),
	rpc("ValidateVolumeCapabilities", csi.ControllerClient.ValidateVolumeCapabilities, func(o objects) *csi.ValidateVolumeCapabilitiesRequest {
		return &csi.ValidateVolumeCapabilitiesRequest{VolumeId: o.free, VolumeCapabilities: []*csi.VolumeCapability{csitest.Mounted("")}}
	}),
	rpc("ControllerModifyVolume", csi.ControllerClient.ControllerModifyVolume, func(o objects) *csi.ControllerModifyVolumeRequest {
		return &csi.ControllerModifyVolumeRequest{VolumeId: o.free, MutableParameters: map[string]string{"type": "fast"}}
	}),
	rpc("ControllerExpandVolume", csi.ControllerClient.ControllerExpandVolume, func(o objects) *csi.ControllerExpandVolumeRequest {
		return &csi.ControllerExpandVolumeRequest{VolumeId: o.free, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: csitest.Mounted("")}
	}),
	rpc("ControllerUnpublishVolume", csi.ControllerClient.ControllerUnpublishVolume, func(o objects) *csi.ControllerUnpublishVolumeRequest {
		return &csi.ControllerUnpublishVolumeRequest{VolumeId: o.attached, NodeId: o.server}
	}),
	rpc("DeleteSnapshot", csi.ControllerClient.DeleteSnapshot, func(o objects) *csi.DeleteSnapshotRequest {
		return &csi.DeleteSnapshotRequest{SnapshotId: o.snapshot}
	}),
	rpc("DeleteVolume", csi.ControllerClient.DeleteVolume, func(o objects) *csi.DeleteVolumeRequest {
		return &csi.DeleteVolumeRequest{VolumeId: o.attached}
	}),
}

// The limits of one RPC on a hostile cloud. The deadline of the sidecars is three minutes; the longest list has a thousand pages.
const (
	sidecarsDeadline = 3 * time.Minute
	mostRequests     = 2000
	longestError     = 4 << 10
	longestLine      = 16 << 10
)

// unfit are the characters that a text must not have if people or programs read it line by line.
func unfit(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) || r == '\u2028' })
}

// checkText fails the test for a text that holds control characters or has lines that are too long.
func checkText(t *testing.T, what, text string, longest int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if len(line) > longest {
			t.Errorf("%s: a line of %d bytes: %.300q", what, len(line), line)
		}
		if unfit(line) {
			t.Errorf("%s: control characters in %.300q", what, line)
		}
	}
}

// alike are attacks on the code that reads bodies. Every RPC uses the same code, so only a few RPCs run against these attacks.
var alike = []string{"blanks without end", "digits without end", "keys without end"}

// run sends every RPC, one after the other, and checks the result of each.
func (c *controller) run(t *testing.T, h *hostile, o objects, name string) {
	worst := 0
	for i, call := range calls {
		if slices.Contains(alike, name) && i%7 != 0 {
			continue
		}
		if h.arm(attacks[name]); attacks[name] == nil {
			h.arm(loginAttacks[name])
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), sidecarsDeadline)
		_, err := call.send(ctx, c, o)
		cancel()
		if took := time.Since(began); took > sidecarsDeadline+time.Second {
			t.Errorf("%s took %v", call.name, took)
		}
		if err != nil {
			checkText(t, "the error of "+call.name, status.Convert(err).Message(), longestError)
		}
		if n := h.requests(); n > mostRequests {
			t.Errorf("%s sent %d requests", call.name, n)
		} else {
			worst = max(worst, n)
		}
		if strings.Contains(fmt.Sprint(err), "panic") {
			t.Errorf("%s: %v", call.name, err)
		}
	}
	checkText(t, "the log", c.log.String(), longestLine)
	if n := len(c.log.String()); n > 4<<20 {
		t.Errorf("the log has %d bytes", n)
	}
	if strings.Contains(c.log.String(), "panicked") || strings.Contains(c.log.String(), "sim-appcred-secret") {
		t.Errorf("the log tells of a panic or holds the secret:\n%.3000s", c.log)
	}
	h.checkElsewhere(t)
	t.Logf("at most %d requests for one RPC, %d bytes of log", worst, len(c.log.String()))
}

func TestAHostileCloudHoldsNoRPCBeyondItsDeadlineAndSpeaksToNoTerminal(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHostile()
				c := startInMemory(t, h, "--logging-format=json")
				o := testenv.Value(c.prepare(t.Context()))(t)
				c.run(t, h, o, name)
			})
		})
	}
}

// Whose an object is, the driver asks the same cloud. Those questions have the same limits.
func TestAHostileCloudHoldsNoProtectingDriver(t *testing.T) {
	for _, protection := range []string{"--protect-other-clusters", "--protect-other-clusters=strict"} {
		for _, name := range []string{"unmarked volumes of many servers", "new pages without end", "the same page for ever", "another object's state", "nulls instead of anything", "control characters in every text"} {
			t.Run(strings.TrimLeft(protection, "-")+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHostile()
					c := startInMemory(t, h, "--logging-format=json", protection, "--server-metadata=role=k8s-node")
					o := testenv.Value(c.prepare(t.Context()))(t)
					c.run(t, h, o, name)
				})
			})
		}
	}
}

func TestAHostileKeystoneGetsNoPasswordToAnotherHost(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(loginAttacks)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHostile()
				h.arm(loginAttacks[name])
				c := startInMemory(t, h)
				const id = "11111111-2222-4333-8444-555555555555"
				c.run(t, h, objects{free: id, attached: id, snapshot: id, server: id}, name)
			})
		})
	}
}

// A catalog names the addresses of the services, and the token goes there. The password goes to the configured address only.
func TestACatalogThatNamesAnotherHostGetsNoPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHostile()
		h.arm(login(func(_ *http.Request, honest *answered) *answered {
			honest.body = []byte(strings.ReplaceAll(string(honest.body), cloudURL, otherURL))
			return honest
		}))
		c := startInMemory(t, h)
		if _, err := c.CreateVolume(t.Context(), csitest.Claim("pvc")); err == nil {
			t.Error("a volume was made by a host that answers {}")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.elsewhere) == 0 {
			t.Error("the catalog was not used")
		}
		for _, request := range h.elsewhere {
			if strings.Contains(request, "password") {
				t.Errorf("another host has got %s", request)
			}
		}
	})
}

// A listing that outlives its callers could read ten thousand answers a second without end. Many callers share one listing, which must end
// when they have left.
func TestAListingThatDoesNotEndStopsWhenItsCallersHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHostile()
		c := startInMemory(t, h)
		testenv.Value(c.prepare(t.Context()))(t)
		h.arm(attacks["new pages without end"])
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for n := range 30 {
			go func() { _, _ = c.CreateVolume(ctx, csitest.Claim(fmt.Sprint("pvc-many-", n))) }()
		}
		<-ctx.Done()
		time.Sleep(10 * time.Second)
		sent := h.requests()
		time.Sleep(time.Hour)
		if more := h.requests() - sent; sent == 0 || more > 100 { // the driver also stops to check creates whose callers have left
			t.Errorf("%d requests in the first 40 s, %d in the hour after", sent, more)
		}
	})
}
