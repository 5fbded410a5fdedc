//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	volumes = flag.Int("volumes", 4, "how many volumes TestVolumesAtOnce uses at once; a measurement uses 50")
	pairs   = flag.Int("pairs", 0, "how many times TestVolumesAtOnce measures this driver and the program PLUGIN in turn; 0 measures this driver alone")
	idleFor = flag.Duration("idle", 10*time.Second, "how long TestNothingIsAskedWhileNothingHappens counts requests")
)

// disks is how many volumes a server has at most. Virtio disks have 26 letters. The root disk and some spare letters are left out, as in the
// Nova limit of many clouds.
const disks = 21

// steps are the operations on each volume, in their order.
var steps = []string{"create", "attach", "expand", "detach", "delete"}

// lived has the times at which the steps of a volume began and ended.
type lived struct {
	id         string
	server     server
	begun, end map[string]time.Time
	again      int  // number of retries
	patient    bool // retry after final errors too, as sidecars do: work of the cloud services fails when the services stop
}

// measured runs one step, and retries as a sidecar does while the error is not final.
func (l *lived) measured(t *testing.T, step string, call func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l.begun[step] = time.Now()
	defer func() { l.end[step] = time.Now() }()
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		err := call(ctx)
		switch code := status.Code(err); {
		case code == codes.OK:
			return true
		case code == codes.Aborted, code == codes.Unavailable, code == codes.DeadlineExceeded, l.patient && ctx.Err() == nil:
			l.again++
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		t.Errorf("%s of volume %s: %v", step, l.id, err)
		return false
	}
}

// run runs all steps of one volume. The channel places limits the disks of the server.
func (l *lived) run(t *testing.T, d *driver, places chan struct{}) {
	block := csitest.Single("")
	ok := l.measured(t, "create", func(ctx context.Context) error {
		made, err := d.controller.CreateVolume(ctx, csitest.Claim(l.id, csitest.As(block), csitest.Wanted(l.server.zone)))
		if err == nil {
			l.id = made.GetVolume().GetVolumeId()
		}
		return err
	})
	if !ok {
		return
	}
	places <- struct{}{}
	_ = l.measured(t, "attach", func(ctx context.Context) error {
		return csitest.Outcome(d.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: l.id, NodeId: l.server.id, VolumeCapability: block}))
	}) && l.measured(t, "expand", func(ctx context.Context) error {
		return csitest.Outcome(d.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: l.id, VolumeCapability: block, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30},
		}))
	})
	l.measured(t, "detach", func(ctx context.Context) error {
		return csitest.Outcome(d.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: l.id, NodeId: l.server.id}))
	})
	<-places
	l.measured(t, "delete", func(ctx context.Context) error {
		return csitest.Outcome(d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: l.id}))
	})
}

// The test creates volumes, attaches them to two servers, expands them in use, detaches and deletes them, all at once. Normal runs use a few
// volumes, a measurement uses fifty. The test prints the durations and does not check them: they depend on the load of the machine.
func TestVolumesAtOnce(t *testing.T) {
	x := newTenant(t, bed(t), zonesOfBed...)
	if *pairs == 0 {
		x.atOnce(t, false)
		return
	}
	var took, asked []float64
	for i := range *pairs {
		var ours, theirs burst
		for _, plugin := range []bool{i%2 == 1, i%2 == 0} { // a machine that becomes slower favors neither
			name := map[bool]string{false: "this driver", true: "PLUGIN"}[plugin] // without a comma, because commas separate the paths in flags
			t.Run(fmt.Sprintf("pair %d of %s", i+1, name), func(t *testing.T) {
				if b := x.atOnce(t, plugin); plugin {
					theirs = b
				} else {
					ours = b
				}
			})
		}
		if t.Failed() {
			t.FailNow()
		}
		took, asked = append(took, ours.wall.Seconds()/theirs.wall.Seconds()), append(asked, ours.calls/theirs.calls)
		t.Logf("pair %d: this driver %s; PLUGIN %s; ratio %.2f of the time, %.2f of the calls", i+1, ours, theirs, took[i], asked[i])
	}
	t.Logf("%d pairs of %d volumes: the median ratio is %.2f of the time and %.2f of the calls", *pairs, *volumes, middleOf(took), middleOf(asked))
}

// burst is what the lives of some volumes at once took.
type burst struct {
	wall  time.Duration
	calls float64 // for one volume
	load  string  // of the machine, before
}

func (b burst) String() string {
	return fmt.Sprintf("%.1f s, %.1f calls a volume (load %s before)", b.wall.Seconds(), b.calls, b.load)
}

func middleOf(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// atOnce measures this driver, or the program PLUGIN. That one may return final errors, which its sidecars repeat, and may return before a volume is gone.
func (x *tenant) atOnce(t *testing.T, plugin bool) burst {
	t.Helper()
	f := x.newFront(t, nil)
	start := func() *driver { return x.startAnywhere(t, f.args...) }
	if plugin {
		path := os.Getenv("PLUGIN")
		if path == "" {
			t.Fatal("-pairs needs the path of another program in PLUGIN, such as upstream's cinder-csi-plugin")
		}
		start = func() *driver { return x.startPlugin(t, path, f.args...) }
	}
	d, cloudLogs, places := start(), x.openLogs(t), map[string]chan struct{}{}
	for _, s := range x.servers {
		places[s.id] = make(chan struct{}, disks)
	}
	load := testfile.Read(t, "/proc/loadavg")
	all := make([]*lived, *volumes)
	began, before := time.Now(), x.processorTime(t)
	var running sync.WaitGroup
	for i := range all {
		at := x.servers[i%len(x.servers)]
		all[i] = &lived{id: "bed-" + rand.Text(), server: at, begun: map[string]time.Time{}, end: map[string]time.Time{}, patient: plugin}
		running.Go(func() { all[i].run(t, d, places[at.id]) })
	}
	running.Wait()
	b := burst{wall: time.Since(began), load: strings.Join(strings.Fields(string(load))[:3], " ")}
	calls := f.taken()
	b.calls = float64(len(calls)) / float64(len(all))
	t.Logf("%d volumes on %d servers: %s\n%s%s%s", len(all), len(x.servers), b,
		table(all), kinds(calls), cloudLogs.summary(t, all, b.wall, x.processorTime(t)-before))
	left := x.holds(t)
	if plugin {
		eventually(t, "the project is empty", func() bool { left = x.holds(t); return len(left) == 0 })
		t.Logf("the project was empty after %.1f s", time.Since(began).Seconds())
	}
	if len(left) > 0 {
		t.Errorf("left in the project: %v", left)
	}
	return b
}

// table has the durations of the steps.
func table(all []*lived) string {
	var text strings.Builder
	again := 0
	for _, step := range steps {
		var took []time.Duration
		var last time.Duration
		for _, l := range all {
			if end, done := l.end[step]; done {
				took = append(took, end.Sub(l.begun[step]))
				last = max(last, end.Sub(all[0].begun["create"]))
			}
		}
		fmt.Fprintf(&text, "  %-6s  p50 %6.2f s  p95 %6.2f s  max %6.2f s  last ended after %6.2f s\n", step,
			centile(took, 50).Seconds(), centile(took, 95).Seconds(), centile(took, 100).Seconds(), last.Seconds())
	}
	for _, l := range all {
		again += l.again
	}
	fmt.Fprintf(&text, "  repeated calls: %d\n", again)
	return text.String()
}

// A driver without RPCs sends no requests to the cloud, whatever volumes exist.
func TestNothingIsAskedWhileNothingHappens(t *testing.T) {
	x := newTenant(t, bed(t))
	f := x.newFront(t, nil)
	d := x.startAnywhere(t, f.args...)
	newVolume(t, d, "")
	f.taken()
	time.Sleep(*idleFor)
	calls := f.taken()
	if allowed := max(1, idleFor.Minutes()); float64(len(calls)) > allowed {
		t.Errorf("%d calls in %s, want at most one a minute:\n%s", len(calls), *idleFor, kinds(calls))
	}
	t.Logf("%d calls in %s", len(calls), *idleFor)
}
