//go:build soak

package soak

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var length = flag.Duration("soak", 15*time.Minute, "how long to run")

const workers = 40

// soak is one run.
type soak struct {
	t       *testing.T
	sim     *openstacksim.Sim
	dir     string
	program string
	metrics string // address
	driver  *exec.Cmd
	log     *os.File

	faults  atomic.Int64
	lives   atomic.Int64
	retries atomic.Int64
	certain atomic.Bool // lose no reply to a create: the process ends soon and forgets its hold-offs
}

func TestAProcessThatRunsLongUnderFaultsDoesNotGrowAndDrains(t *testing.T) {
	s := newSoak(t)
	s.start()
	working, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() { s.work(working, worker) })
	}

	// The first process ends in the middle of the work.
	hold := min(130*time.Second, *length/8) // the process must not forget a create whose reply was lost
	time.Sleep(*length/3 - hold)
	s.certain.Store(true)
	time.Sleep(hold)
	s.terminate()
	s.start()
	s.certain.Store(false)

	samples := s.watch(*length * 2 / 3)
	stop()
	all.Wait()
	if left := s.sim.VolumeStates(); len(left) > 0 {
		t.Errorf("%d volumes are left: %+v", len(left), left)
	}
	s.terminate()
	t.Logf("%d lives of a volume, %d retries, %d faults in %s", s.lives.Load(), s.retries.Load(), s.faults.Load(), *length)
	s.compare(samples)
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	config := openstacksim.Default()
	config.Projects[1].Quota = map[string]int{"volumes": -1, "gigabytes": -1}
	config.MaxDisks = 1000
	s := &soak{t: t, sim: openstacksim.New(config), dir: t.TempDir()}
	cloud := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(cloud.Close)
	testfile.Write(t, filepath.Join(s.dir, "cloud.conf"), s.sim.CloudConf(cloud.URL), 0o600)
	s.program = filepath.Join(s.dir, "cinder-csi-driver")
	if out, err := exec.Command("go", "build", "-o", s.program, "../../../cmd/cinder-csi-driver").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return s
}

// serve is the cloud behind a network on which one request in twenty fails.
func (s *soak) serve(w http.ResponseWriter, r *http.Request) {
	next := s.sim.Handler()
	creates := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes")
	if rand.IntN(20) > 0 || strings.HasPrefix(r.URL.Path, "/identity") {
		next.ServeHTTP(w, r)
		return
	}
	s.faults.Add(1)
	// After a lost reply to a write, the volume waits for up to two minutes, so most faults are of other kinds.
	switch n := rand.IntN(30); {
	case n < 8:
		w.WriteHeader(http.StatusServiceUnavailable)
	case n == 8: // rarer, because the driver halves its request rate after each
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case n < 22:
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
		next.ServeHTTP(w, r)
	case n == 22 && !(creates && s.certain.Load()):
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case n == 23 && !(creates && s.certain.Load()):
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(http.StatusConflict)
	}
}

func (s *soak) socket() string { return filepath.Join(s.dir, "csi.sock") }

// start starts a process and waits until it serves.
func (s *soak) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.metrics = listener.Addr().String()
	listener.Close()
	if s.log, err = os.OpenFile(filepath.Join(s.dir, "driver.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.driver = exec.Command(s.program, "--endpoint=unix://"+s.socket(), "--cloud-config="+filepath.Join(s.dir, "cloud.conf"), "--cluster=soak",
		"--provide-node-service=false", "--http-endpoint="+s.metrics)
	s.driver.Stderr = s.log
	if err := s.driver.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 100 {
		if response, err := http.Get("http://" + s.metrics + "/healthz"); err == nil {
			response.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatal("the driver does not serve")
}

// terminate sends SIGTERM while calls are in progress. The process must end by itself, without an error.
func (s *soak) terminate() {
	s.t.Helper()
	if err := s.driver.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.driver.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			s.t.Errorf("after SIGTERM the driver ends with %v", err)
		}
		s.t.Logf("SIGTERM drained in %s", time.Since(begun).Round(time.Millisecond))
	case <-time.After(40 * time.Second): // the grace period of Kubernetes, and 10 s more
		_ = s.driver.Process.Kill()
		s.t.Fatal("the driver has not ended 40 s after SIGTERM")
	}
	s.log.Close()
}

// work creates, attaches, detaches and deletes volumes, one after the other. Like a sidecar it retries each call until it succeeds.
func (s *soak) work(ctx context.Context, worker int) {
	conn, err := grpc.NewClient("unix://"+s.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	controller, server := csi.NewControllerClient(conn), openstacksim.Default().Servers[worker%2].ID
	for life := 0; ctx.Err() == nil; life++ {
		var id string
		s.until(func(ctx context.Context) error {
			answer, err := controller.CreateVolume(ctx, csitest.Claim(fmt.Sprintf("pvc-%d-%d", worker, life)))
			id = answer.GetVolume().GetVolumeId()
			return err
		})
		s.until(func(ctx context.Context) error {
			return csitest.Outcome(controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: server, VolumeCapability: csitest.Mounted("")}))
		})
		s.until(func(ctx context.Context) error {
			return csitest.Outcome(controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: server}))
		})
		s.until(func(ctx context.Context) error {
			return csitest.Outcome(controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
		})
		s.lives.Add(1)
	}
}

// until retries a call with the back-off of a sidecar.
func (s *soak) until(call func(ctx context.Context) error) {
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := call(ctx)
		cancel()
		if err == nil {
			return
		}
		if try == 60 {
			s.t.Errorf("never succeeds: %v", err)
			return
		}
		s.retries.Add(1)
		time.Sleep(min(100*time.Millisecond<<min(try, 10), 10*time.Second))
	}
}

// sample is one reading of the process metrics.
type sample struct{ goroutines, heap float64 }

// watch reads the metrics for a while.
func (s *soak) watch(d time.Duration) (samples []sample) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(max(d/200, 20*time.Millisecond)) {
		samples = append(samples, s.read())
	}
	return samples
}

func (s *soak) read() (got sample) {
	s.t.Helper()
	response, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		number, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			got.goroutines = number
		case "go_memstats_heap_inuse_bytes":
			got.heap = number
		}
	}
	return got
}

// compare wants the last third of the samples to be about the same as the second. In the first third the process warms up.
func (s *soak) compare(samples []sample) {
	s.t.Helper()
	third := len(samples) / 3
	for name, of := range map[string]func(sample) float64{
		"goroutines":       func(x sample) float64 { return x.goroutines },
		"heap in use, MiB": func(x sample) float64 { return x.heap / (1 << 20) },
	} {
		before, after := median(samples[third:2*third], of), median(samples[2*third:], of)
		s.t.Logf("%s: median %.1f in the middle, %.1f at the end", name, before, after)
		if after > before*1.3+20 {
			s.t.Errorf("%s grow from %.1f to %.1f", name, before, after)
		}
	}
}

func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, x := range samples {
		values = append(values, of(x))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
