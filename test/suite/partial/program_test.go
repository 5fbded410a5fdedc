//go:build partial

package partial

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var programs = flag.String("programs", "", "paths of driver programs, separated by commas: TestTheSameFaultsOnPrograms compares them in real time")

// broken is one cell of the comparison. It names requests by method, path and filters, since programs differ in microversions.
type broken struct {
	scenario string
	method   string
	path     string // of the driver's request table
	filters  string // "any" or those of the listing
	fault    string
}

var compared = []broken{
	{"CreateVolume", "", "", "", ""},
	{"CreateVolume", http.MethodGet, "/volumes/detail", "not by name", "504 after 3 s"},
	{"CreateVolume", http.MethodGet, "/volumes/detail", "any", "400 unknown filter"},
	{"CreateVolume", http.MethodPost, "/volumes", "any", "503"},
	{"CreateVolume", http.MethodGet, "/volumes/{id}", "any", "ten times slower"},
	{"CreateVolume", http.MethodGet, "/volumes/{id}", "any", "503"},
	{"ControllerPublishVolume", "", "", "", ""},
	{"ControllerPublishVolume", http.MethodGet, "/volumes/detail", "not by name", "504 after 3 s"},
	{"ControllerPublishVolume", http.MethodPost, "/servers/{server}/os-volume_attachments", "any", "429"},
	{"ControllerUnpublishVolume", "", "", "", ""},
	{"ControllerUnpublishVolume", http.MethodGet, "/servers/{server}/os-volume_attachments", "any", "504 after 3 s"},
	{"DeleteVolume", "", "", "", ""},
	{"DeleteVolume", http.MethodGet, "/volumes/detail", "any", "504 after 3 s"},
	{"DeleteVolume", http.MethodDelete, "/volumes/{id}", "any", "500"},
}

func (b broken) String() string {
	if b.fault == "" {
		return b.scenario + ": healthy"
	}
	return fmt.Sprintf("%s: %s %s (%s): %s", b.scenario, b.method, b.path, b.filters, b.fault)
}

// meets says whether the fault is that of a request.
func (b broken) meets(r *http.Request) (kind, bool) {
	k, known := kindAt(r, nil, serviceOf(r), func(cloud.Call) bool { return true })
	if !known || k.Call.Method != b.method || k.Call.Path != b.path {
		return k, false
	}
	return k, b.filters != "not by name" || !strings.Contains(k.Filters, "name")
}

// The comparison with another driver of the same interface, such as upstream's plugin. The faults last for 30 s; each call is repeated like
// a sidecar repeats it. It prints a table, and checks nothing.
func TestTheSameFaultsOnPrograms(t *testing.T) {
	if *programs == "" {
		t.Fatal("name the programs: -programs bin/cinder-csi-driver,PATH")
	}
	const n = 20
	rows := map[string][]string{}
	for _, program := range strings.Split(*programs, ",") {
		for _, b := range compared {
			rows[b.String()] = append(rows[b.String()], onProgram(t, program, b, n))
		}
	}
	var text strings.Builder
	for _, b := range compared {
		fmt.Fprintf(&text, "| %s | %s |\n", b, strings.Join(rows[b.String()], " | "))
	}
	t.Logf("%d in flight: time until all are done, errors on the way, requests\n%s", n, text.String())
}

func onProgram(t *testing.T, program string, b broken, n int) string {
	t.Helper()
	config := openstacksim.Default()
	sim := openstacksim.New(config)
	for _, resource := range []string{"volumes", "gigabytes"} {
		sim.SetQuota("demo", resource, -1)
	}
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	front := &serverBreaker{breaker: &breaker{next: memnet.Transport(sim.Handler())}}
	server := httptest.NewServer(front)
	defer server.Close()
	w := &world{t: t, sim: sim, az1: config.Servers[0].ID, volumes: make([]string, n), objects: make([]string, n)}
	w.ControllerClient = startProgram(t, program, sim.CloudConf(server.URL))
	s := scenarioNamed(t, b.scenario)
	s.prepare(w)
	time.Sleep(6 * time.Second) // until no program has cached state
	front.begin(b)
	defer time.AfterFunc(30*time.Second, front.end).Stop()
	begun, failed, mu := time.Now(), map[codes.Code]int{}, sync.Mutex{}
	errs, _ := w.each(func(ctx context.Context, i int) error {
		for wait := 500 * time.Millisecond; ; wait *= 2 {
			err := s.call(ctx, w, i)
			if err == nil || ctx.Err() != nil {
				return err
			}
			mu.Lock()
			failed[status.Code(err)]++
			mu.Unlock()
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	})
	never := 0
	for _, err := range errs {
		if err != nil {
			never++
		}
	}
	result := fmt.Sprintf("%.1f s, %d requests", time.Since(begun).Seconds(), front.requests())
	if len(failed) > 0 {
		result += fmt.Sprintf(", errors %v", failed)
	}
	if never > 0 {
		result += fmt.Sprintf(", %d of %d never done", never, n)
	}
	t.Logf("%s: %s: %s", filepath.Base(program), b, result)
	return result
}

func scenarioNamed(t *testing.T, name string) scenario {
	t.Helper()
	for _, s := range scenarios {
		if s.String() == name {
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return scenario{}
}

// startProgram starts the controller role of a driver. The flags are those that this project and upstream have in common.
func startProgram(t *testing.T, program string, cloudConf []byte) csi.ControllerClient {
	t.Helper()
	dir := t.TempDir()
	conf, socket := filepath.Join(dir, "cloud.conf"), filepath.Join(dir, "csi.sock")
	testfile.Write(t, conf, cloudConf, 0o600)
	cmd := exec.CommandContext(t.Context(), program, "--endpoint=unix://"+socket, "--cloud-config="+conf, "--cluster=test",
		"--provide-controller-service=true", "--provide-node-service=false")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("%s does not serve: %v", program, err)
	}
	return csi.NewControllerClient(conn)
}

// serverBreaker is a breaker as a proxy before the cloud.
type serverBreaker struct {
	*breaker
	mu   sync.Mutex
	rule *broken
	sent int
}

func (s *serverBreaker) begin(b broken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = 0
	if b.fault != "" {
		s.rule = &b
	}
}

func (s *serverBreaker) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = nil
}

func (s *serverBreaker) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// ServeHTTP implements http.Handler.
func (s *serverBreaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := s.pass(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func (s *serverBreaker) pass(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	rule := s.rule
	if !strings.HasPrefix(r.URL.Path, "/identity") {
		s.sent++
	}
	s.mu.Unlock()
	if rule != nil {
		if k, met := rule.meets(r); met {
			for _, f := range faults {
				if f.name == rule.fault && f.applies(k) {
					return s.fail(r, k, f)
				}
			}
		}
	}
	return s.next.RoundTrip(r)
}
