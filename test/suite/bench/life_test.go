package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The cloud: medians as on a busy one. 30 ms for an answer and 0.45 ms a row were measured on Cinder 21.
const (
	spread  = 0.6 // of log-normal times: the 99th percentile is 4.04 times the median
	jitter  = 0.3 // of the API's answers
	perRow  = 450 * time.Microsecond
	stagger = 100 * time.Microsecond // between the begins of two RPCs of one batch
	baseURL = "http://cloud.bench"
)

var medians = map[openstacksim.Operation]time.Duration{
	openstacksim.Answer: 30 * time.Millisecond, openstacksim.Reserve: 20 * time.Millisecond,
	openstacksim.CreateVolume: 1500 * time.Millisecond, openstacksim.DeleteVolume: time.Second, openstacksim.ExtendVolume: 800 * time.Millisecond,
	openstacksim.Attach: 1200 * time.Millisecond, openstacksim.Detach: 1200 * time.Millisecond,
}

// steps are the operations of a volume's life, in their order.
var steps = []openstacksim.Operation{
	openstacksim.CreateVolume, openstacksim.Attach, openstacksim.ExtendVolume, openstacksim.Detach, openstacksim.DeleteVolume,
}

// run is one setting: so many volumes at once, so many times.
type run struct {
	volumes, repeats int
	servers          int
	each             bool // poll each volume by itself
	seed             uint64
}

// op is one RPC as it went.
type op struct {
	step   openstacksim.Operation
	repeat int
	volume string
	begun  time.Duration // after the step's
	took   time.Duration // until it succeeded, with the pauses of the sidecar where it was tried again
	tries  int
	own    time.Duration // the cloud's
}

func (o op) added() time.Duration { return o.took - o.own }

// cloud makes the simulated cloud of a run.
func (r run) cloud(jitter float64) *openstacksim.Sim {
	c := openstacksim.Default()
	c.Latency = medians
	c.Servers = nil
	for n := range r.servers {
		c.Servers = append(c.Servers, openstacksim.Server{ID: serverID(n), Name: fmt.Sprint("node-", n), Project: "demo", Zone: "az1"})
	}
	for i := range c.Projects {
		c.Projects[i].Quota = map[string]int{"volumes": -1, "gigabytes": -1}
	}
	sim := openstacksim.New(c)
	sim.SetTiming(openstacksim.Timing{Seed: r.seed, Spread: spread, Jitter: jitter, Row: perRow, Serial: true, Forget: 20 * time.Millisecond})
	return sim
}

func serverID(n int) string { return fmt.Sprintf("5e4f0000-0000-4000-8000-%012x", n) }

func name(repeat, n int) string { return fmt.Sprintf("pvc-%d-%d", repeat, n) }

// product starts a driver on sim, in the bubble of the test.
func product(t *testing.T, sim *openstacksim.Sim) csi.ControllerClient {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, path, sim.CloudConf(baseURL), 0o600)
	var cfg config.Config
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	cfg.Bind(flags)
	testenv.Must(t, flags.Parse([]string{"--endpoint=unix:///unused", "--cloud-config=" + path, "--cluster=bench", "--provide-node-service=false"}))
	listener := memnet.Listen()
	return client(t, listener, func(ctx context.Context) error {
		return driver.Run(ctx, cfg, driver.Dependencies{
			Version: "bench", Stderr: io.Discard, Listener: listener, Transport: memnet.Transport(sim.Handler()), Env: func(string) string { return "" },
			Watch: func(context.Context, []string) (<-chan struct{}, error) { return nil, nil }, // inotify knows no virtual time
		})
	})
}

// client runs a controller, which answers at listener, until the test ends.
func client(t *testing.T, listener *memnet.Listener, serve func(context.Context) error) csi.ControllerClient {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	conn := testenv.Value(grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) })))(t)
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the driver: %v", err)
		}
	})
	return csi.NewControllerClient(conn)
}

// life is what a run's RPCs took, and how many calls each step cost in all its repeats.
type life struct {
	ops   []op
	calls map[openstacksim.Operation]int
	idle  float64 // calls a minute while nothing happens but the attacher's ListVolumes
}

// live takes a run's volumes through their lives.
func (r run) live(t *testing.T) life {
	sim := r.cloud(jitter)
	start := product
	if r.each {
		start = baseline
	}
	client := start(t, sim)
	if _, err := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); err != nil { // logs in
		t.Fatal(err)
	}
	l := life{calls: map[openstacksim.Operation]int{}}
	var sequences []sequence
	for repeat := range r.repeats {
		ids := make([]string, r.volumes)
		for _, step := range steps {
			if step == openstacksim.ExtendVolume && repeat == 0 {
				l.idle = r.rest(t, client, sim)
			}
			before, begun := sim.RequestCount(), time.Now()
			sim.ResetEffects()
			ops := make([]op, r.volumes)
			var all sync.WaitGroup
			for n := range ops {
				all.Go(func() {
					time.Sleep(time.Duration(n) * stagger)
					ops[n] = r.do(t, client, step, repeat, n, ids, begun)
				})
			}
			all.Wait()
			l.ops = append(l.ops, ops...)
			l.calls[step] += sim.RequestCount() - before
			sequences = append(sequences, sequenceOf(step, ops, sim.Effects()))
			time.Sleep(10 * time.Second)
		}
	}
	r.own(t, sequences, l.ops)
	return l
}

// rest lets ten minutes pass in which only the attacher's reconciler looks, once a minute.
func (r run) rest(t *testing.T, client csi.ControllerClient, sim *openstacksim.Sim) float64 {
	const minutes = 10
	before := sim.RequestCount()
	for range minutes {
		time.Sleep(time.Minute)
		if _, err := client.ListVolumes(t.Context(), &csi.ListVolumesRequest{}); err != nil {
			t.Error(err)
		}
	}
	return float64(sim.RequestCount()-before) / minutes
}

// do is one RPC, tried again as the sidecars do until it succeeds.
func (r run) do(t *testing.T, client csi.ControllerClient, step openstacksim.Operation, repeat, n int, ids []string, stepBegun time.Time) op {
	begun := time.Now()
	o := op{step: step, repeat: repeat, volume: name(repeat, n), begun: begun.Sub(stepBegun)}
	node := serverID(n % r.servers)
	for pause := time.Second; ; pause = min(2*pause, 5*time.Minute) {
		o.tries++
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		var err error
		switch step {
		case openstacksim.CreateVolume:
			var made *csi.CreateVolumeResponse
			made, err = client.CreateVolume(ctx, csitest.Claim(o.volume))
			ids[n] = made.GetVolume().GetVolumeId()
		case openstacksim.Attach:
			_, err = client.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: ids[n], NodeId: node, VolumeCapability: csitest.Mounted("")})
		case openstacksim.ExtendVolume:
			_, err = client.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: ids[n], CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: csitest.Mounted("")})
		case openstacksim.Detach:
			_, err = client.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: ids[n], NodeId: node})
		case openstacksim.DeleteVolume:
			_, err = client.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: ids[n]})
		}
		cancel()
		if err == nil {
			o.took = time.Since(begun)
			return o
		}
		if c := status.Code(err); !slices.Contains([]codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}, c) || o.tries > 20 {
			t.Errorf("%s %s: %v", step, o.volume, err)
			return o
		}
		time.Sleep(pause)
	}
}
