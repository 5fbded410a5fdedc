//go:build monitoring

package monitoring

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/dataplane"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/tools/pictures"
)

// workload is a small cluster: a simulated cloud whose volumes are loop devices, two controllers, and three nodes with pods that come and go. A
// Prometheus scrapes the drivers. Sidecars, kubelet and pods are goroutines of the test.
type workload struct {
	t           *testing.T
	dir         string
	sim         *openstacksim.Sim
	controllers []*process // only the first works: it has the leases
	nodes       []*worker
	prometheus  string
	all         sync.WaitGroup
}

// worker is a node.
type worker struct {
	*process
	server string // ID
	conf   string // path of its cloud.conf
}

// smallNode is a node whose limit is smallLimit, so that it is full during the run. The other nodes calculate their limit.
const smallNode, smallLimit = 2, 3

func newWorkload(t *testing.T, scrape time.Duration) *workload {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs", "blkid", "util-linux")
	dir := testenv.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	plane := testenv.Value(dataplane.New(filepath.Join(dir, "disks"), dataplane.Options{Delay: 100 * time.Millisecond}))(t)
	t.Cleanup(func() {
		testenv.UnmountBelow(dir) // the pods run until the end
		testenv.Check(t, plane.Close())
	})
	config := openstacksim.Default()
	config.Projects[1].Quota = map[string]int{"volumes": 50, "gigabytes": 100, "snapshots": 10, "gigabytes_standard": 60}
	config.Servers = append(config.Servers, openstacksim.Server{
		ID: openstacksim.FixedID("server", "node-az2-b"), Name: "node-az2-b", Project: config.Servers[1].Project, Zone: config.Servers[1].Zone,
	})
	w := &workload{t: t, dir: dir, sim: openstacksim.New(config)}
	for operation, takes := range map[openstacksim.Operation]time.Duration{
		openstacksim.Answer: 40 * time.Millisecond, openstacksim.CreateVolume: 900 * time.Millisecond, openstacksim.DeleteVolume: 700 * time.Millisecond,
		openstacksim.CreateSnapshot: 600 * time.Millisecond, openstacksim.DeleteSnapshot: 400 * time.Millisecond,
		openstacksim.Attach: 1200 * time.Millisecond, openstacksim.Detach: 1500 * time.Millisecond,
	} {
		w.sim.SetLatency(operation, takes)
	}
	w.sim.SetTiming(openstacksim.Timing{Seed: 1, Spread: 0.4, Jitter: 0.4})
	testenv.Must(t, w.sim.UseDataPlane(plane))
	cloud := httptest.NewServer(w.sim.Handler())
	t.Cleanup(cloud.Close)

	driver := filepath.Join(bin, "cinder-csi-driver")
	conf := filepath.Join(dir, "cloud.conf")
	writeFile(t, conf, string(w.sim.CloudConf(cloud.URL)))
	var targets []target
	for _, pod := range []string{"cinder-csi-controller-5d8f7c9b6-k2xqp", "cinder-csi-controller-5d8f7c9b6-w7hnl"} {
		p := launch(t, driver, "--provide-node-service=false", "--with-capacity", "--cloud-config="+conf)
		w.controllers = append(w.controllers, p)
		targets = append(targets, target{p.web, "cinder-csi", pod, fmt.Sprintf("10.244.1.%d:8080", len(targets)+7)})
	}
	for i, server := range config.Servers {
		// The driver looks at its file again when anything in the directory changes.
		n := &worker{server: server.ID, conf: filepath.Join(t.TempDir(), "cloud.conf")}
		text := "[BlockStorage]\n"
		if i == smallNode {
			text += fmt.Sprintf("node-volume-attach-limit = %d\n", smallLimit)
		}
		writeFile(t, n.conf, text)
		disks := filepath.Join(dir, "disks", "servers", "by-name", server.Name)
		n.process = launch(t, driver, "--provide-controller-service=false", "--sys-root="+filepath.Join(disks, "sys"), "--dev-root="+filepath.Join(disks, "dev"),
			"--metadata-url="+cloud.URL+"/metadata/"+server.Name, "--cloud-config="+n.conf)
		testenv.Value(csi.NewNodeClient(n).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t)
		w.nodes = append(w.nodes, n)
		targets = append(targets, target{n.web, "cinder-csi-node", fmt.Sprintf("cinder-csi-node-%d", i), fmt.Sprintf("192.0.2.%d:29603", 11+i)})
	}
	w.prometheus = prometheus(t, scrape, targets...)
	return w
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	testfile.Write(t, path, text, 0o600)
}

// fault is one thing that goes wrong. Its times are parts of the run.
type fault struct {
	what       string
	dashboards []string
	from, to   float64
	begin      func(w *workload, ctx context.Context) (repair func())
}

var ofCloud = []string{"cinder-csi-controller", "cinder-csi-cloud"}

var faults = []fault{
	{"Cinder answers HTTP 429: too many requests", ofCloud, 0.14, 0.24, func(w *workload, _ context.Context) func() {
		return w.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/**", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}})
	}},
	{"Nova answers HTTP 500 to each attach", ofCloud, 0.32, 0.44, func(w *workload, _ context.Context) func() {
		return w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/compute/**", Contains: "volumeAttachment", Status: http.StatusInternalServerError})
	}},
	{"Cinder answers HTTP 503: it is down", ofCloud, 0.52, 0.68, func(w *workload, _ context.Context) func() {
		return w.sim.SetFault(openstacksim.Fault{Path: "/volume/**", Status: http.StatusServiceUnavailable})
	}},
	{"Keystone refuses the credentials", ofCloud, 0.84, 0.90, func(w *workload, _ context.Context) func() {
		login := w.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/identity/v3/auth/tokens", Status: http.StatusUnauthorized})
		w.sim.RevokeTokens()
		return login
	}},
	{"The disk of a volume does not come to 192.0.2.12", []string{"cinder-csi-node"}, 0.10, 0.30, func(w *workload, ctx context.Context) func() {
		attached := make(chan struct{}) // closed when Nova may attach the volume
		w.all.Go(func() { w.pod(ctx, "late", w.nodes[1], time.Hour, attached) })
		return func() { close(attached) }
	}},
	{"The kernel makes a file system on 192.0.2.11 read-only", []string{"cinder-csi-node"}, 0.42, 0.58, func(w *workload, _ context.Context) func() {
		staging := filepath.Join(w.dir, steady(0), "staging")
		return func(change func(uintptr)) func() {
			change(unix.MS_RDONLY)
			return func() { change(0) }
		}(func(flags uintptr) {
			if err := unix.Mount("", staging, "", unix.MS_REMOUNT|flags, ""); err != nil {
				w.t.Errorf("remount %s: %v", staging, err)
			}
		})
	}},
	{"Somebody writes a broken cloud.conf for 192.0.2.13", []string{"cinder-csi-node"}, 0.68, 0.86, func(w *workload, _ context.Context) func() {
		conf := w.nodes[smallNode].conf
		good, err := os.ReadFile(conf)
		if err != nil {
			w.t.Error(err)
		}
		writeFile(w.t, conf, "[BlockStorage\n")
		return func() { writeFile(w.t, conf, string(good)) }
	}},
}

// steady is the name of a pod that stays until the end.
func steady(number int) string { return fmt.Sprintf("steady-%d", number) }

// play lets the cluster live for a number of seconds, with the faults.
func (w *workload) play(seconds int) (played []pictures.Fault) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	part := func(p float64) time.Duration { return time.Duration(p * float64(seconds) * float64(time.Second)) }
	for i := range len(w.nodes) * smallLimit {
		w.all.Go(func() {
			if pause(ctx, part(0.05*float64(i))) {
				w.pod(ctx, steady(i), w.nodes[i%len(w.nodes)], part(1), nil)
			}
		})
	}
	w.all.Go(func() {
		for i := 0; pause(ctx, 6*time.Second); i++ { // jobs
			w.all.Go(func() { w.pod(ctx, fmt.Sprintf("job-%d", i), w.nodes[i%smallNode], 4*time.Second, nil) })
		}
	})
	w.all.Go(func() { w.snapshots(ctx) })
	w.all.Go(func() {
		for pause(ctx, 7*time.Second) { // the provisioner
			_, _ = w.controller().GetCapacity(ctx, &csi.GetCapacityRequest{})
		}
	})
	var ended sync.WaitGroup
	for _, f := range faults {
		played = append(played, pictures.Fault{What: f.what, Dashboards: f.dashboards, From: int(f.from * float64(seconds)), To: int(f.to * float64(seconds))})
		ended.Go(func() {
			if pause(ctx, part(f.from)) {
				repair := f.begin(w, ctx)
				defer repair()
				pause(ctx, part(f.to-f.from))
			}
		})
	}
	pause(ctx, part(1))
	ended.Wait()
	stop()
	w.all.Wait()
	slices.SortStableFunc(played, func(a, b pictures.Fault) int { return a.From - b.From })
	return played
}

// pause waits in real time, because the programs are real. It reports whether the run goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// retry repeats each step as sidecars and kubelet do, until it succeeds or the run ends. It reports whether all succeeded.
func retry(ctx context.Context, steps ...step) bool {
	for _, s := range steps {
		for wait := time.Second; ; wait = min(2*wait, 5*time.Minute) {
			attempt, cancel := context.WithTimeout(ctx, s.timeout)
			err := s.call(attempt)
			cancel()
			if err == nil {
				break
			}
			if !pause(ctx, wait) {
				return false
			}
		}
	}
	return true
}

const (
	sidecarTimeout = 3 * time.Minute // as in the manifests
	kubeletTimeout = 2 * time.Minute
)

func (w *workload) controller() csi.ControllerClient {
	return csi.NewControllerClient(w.controllers[0])
}

// step is one RPC of a sidecar or of kubelet.
type step struct {
	timeout time.Duration
	call    func(ctx context.Context) error
}

// pod takes a volume from its creation to its deletion. The pod runs for a while, and kubelet asks for the usage of its volume. With a channel, Nova
// attaches the disk only after that is closed, though kubelet believes that it is there.
func (w *workload) pod(ctx context.Context, name string, on *worker, runs time.Duration, late <-chan struct{}) {
	c, n := w.controller(), csi.NewNodeClient(on)
	dir := filepath.Join(w.dir, name)
	staging, mount := filepath.Join(dir, "staging"), filepath.Join(dir, "mount")
	if err := os.MkdirAll(staging, 0o750); err != nil {
		w.t.Error(err)
		return
	}
	var id string
	attach := step{sidecarTimeout, func(ctx context.Context) error {
		return csitest.Outcome(c.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: on.server, VolumeCapability: csitest.Mounted("")}))
	}}
	begin := []step{
		{sidecarTimeout, func(ctx context.Context) (err error) {
			id, err = createOn(ctx, w.controllers[0], name)
			return err
		}},
		attach,
		{kubeletTimeout, func(ctx context.Context) error {
			return csitest.Outcome(n.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: id, StagingTargetPath: staging, VolumeCapability: csitest.Mounted(""), PublishContext: map[string]string{"DevicePath": "/dev/vdb"},
			}))
		}},
		{kubeletTimeout, func(ctx context.Context) error {
			return csitest.Outcome(n.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: mount, VolumeCapability: csitest.Mounted("")}))
		}},
	}
	end := []step{
		{kubeletTimeout, func(ctx context.Context) error {
			return csitest.Outcome(n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: mount}))
		}},
		{kubeletTimeout, func(ctx context.Context) error {
			return csitest.Outcome(n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}))
		}},
		{sidecarTimeout, func(ctx context.Context) error {
			return csitest.Outcome(c.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: on.server}))
		}},
		{sidecarTimeout, func(ctx context.Context) error {
			return csitest.Outcome(c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
		}},
	}
	if late != nil {
		begin[1].call = func(context.Context) error { return nil }
		w.all.Go(func() {
			select {
			case <-late:
				retry(ctx, attach)
			case <-ctx.Done():
			}
		})
	}
	if !retry(ctx, begin...) {
		return
	}
	for stops := time.Now().Add(runs); time.Now().Before(stops); {
		stats, cancel := context.WithTimeout(ctx, kubeletTimeout)
		_, _ = n.NodeGetVolumeStats(stats, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: mount})
		cancel()
		if !pause(ctx, min(runs, 10*time.Second)) {
			return
		}
	}
	retry(ctx, end...)
}

// snapshots takes a snapshot of a volume again and again, and deletes it.
func (w *workload) snapshots(ctx context.Context) {
	c := w.controller()
	var volume, snapshot string
	if !retry(ctx, step{sidecarTimeout, func(ctx context.Context) (err error) {
		volume, err = createOn(ctx, w.controllers[0], "database")
		return err
	}}) {
		return
	}
	for round := 0; pause(ctx, 6*time.Second); round++ {
		retry(ctx, step{sidecarTimeout, func(ctx context.Context) error {
			made, err := c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: fmt.Sprintf("hourly-%d", round), SourceVolumeId: volume})
			snapshot = made.GetSnapshot().GetSnapshotId()
			return err
		}}, step{sidecarTimeout, func(ctx context.Context) error {
			return csitest.Outcome(c.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: snapshot}))
		}})
	}
}
