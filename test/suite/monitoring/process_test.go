//go:build monitoring

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const bin = "../../../bin"

// process is a program that runs until the test ends.
type process struct {
	web string // address of its HTTP server
	pid int
	*grpc.ClientConn
}

func start(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, cmd.Stdout = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s: %.3000s", program, text)
		}
	})
	return cmd
}

// freeAddress is an address that no program listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// until repeats check in real time, because the programs are real.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = check(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

func get(address string) ([]byte, error) {
	response, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", response.Status, text)
	}
	return text, err
}

// simulate runs openstack-sim and returns its directory and URL.
func simulate(t *testing.T) (dir, address string) {
	t.Helper()
	dir = t.TempDir()
	start(t, filepath.Join(bin, "openstack-sim"), "--dir="+dir, "--latency=1ms")
	until(t, "the simulated cloud", func() error {
		text, err := os.ReadFile(filepath.Join(dir, "url"))
		address = strings.TrimSpace(string(text))
		return err
	})
	return dir, address
}

// launch runs a driver.
func launch(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{web: freeAddress(t)}
	socket := filepath.Join(t.TempDir(), "csi.sock")
	p.pid = start(t, program, append([]string{"--endpoint=unix://" + socket, "--http-endpoint=" + p.web, "--cluster=test"}, args...)...).Process.Pid
	until(t, "the driver", func() error { _, err := get("http://" + p.web + "/metrics"); return err })
	var err error
	if p.ClientConn, err = grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func launchController(t *testing.T, program, dir string) *process {
	t.Helper()
	return launch(t, program, "--provide-node-service=false", "--with-capacity", "--openstack-reads-per-second=0", "--openstack-writes-per-second=0",
		"--cloud-config="+filepath.Join(dir, "cloud.conf"))
}

// launchNode runs the node role on an empty machine, and asks for its limit as kubelet does.
func launchNode(t *testing.T, program, cloud string) *process {
	t.Helper()
	machine := testenv.NewMachine(t)
	for _, dir := range []string{"proc/self", "sys/block"} {
		if err := os.MkdirAll(machine.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(machine.Path("proc/self/mountinfo"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, program, "--provide-controller-service=false", "--sys-root="+machine.Sys, "--dev-root="+machine.Dev, "--proc-root="+machine.Path("proc"),
		"--metadata-url="+cloud+"/metadata/node-az1", "--cloud-config="+machine.Path("no.conf"))
	if _, err := csi.NewNodeClient(p).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func createOn(ctx context.Context, p *process, name string) (string, error) {
	made, err := csi.NewControllerClient(p).CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability()}, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
	})
	return made.GetVolume().GetVolumeId(), err
}

// work does for a while what sidecars and kubelet do, with some calls that fail.
func work(t *testing.T, controller, node *process, seconds int) {
	t.Helper()
	c := csi.NewControllerClient(controller)
	server := openstacksim.Default().Servers[0].ID
	staging := filepath.Join(t.TempDir(), "staging")
	go func() {
		for t.Context().Err() == nil { // its disk never comes
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, _ = csi.NewNodeClient(node).NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b", StagingTargetPath: staging, VolumeCapability: capability(),
			})
			cancel()
		}
	}()
	for end, i := time.Now().Add(time.Duration(seconds)*time.Second), 0; time.Now().Before(end); i++ {
		id, err := createOn(t.Context(), controller, fmt.Sprintf("life-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: server, VolumeCapability: capability()}); err != nil {
			t.Fatal(err)
		}
		_, _ = c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}) // refused: it is attached
		if i > 0 {
			if _, err := c.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: server}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = c.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
	}
}

// prometheus runs Debian's Prometheus with the rules, on two drivers. It returns its URL.
func prometheus(t *testing.T, controller, node *process) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	var files []string
	for _, component := range rules {
		path := filepath.Join(dir, component+".yaml")
		if err := os.WriteFile(path, specOf(t, component, false), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- job_name: cinder-csi
  static_configs:
  - {targets: [%q], labels: {namespace: cinder-csi, pod: cinder-csi-controller-0}}
  - {targets: [%q], labels: {namespace: cinder-csi-node, pod: cinder-csi-node-0}}
`, strings.Join(files, ", "), controller.web, node.web)
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, "prometheus", "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	until(t, "Prometheus", func() error { _, err := get("http://" + address + "/-/ready"); return err })
	return "http://" + address
}

// ask evaluates an expression. It returns how many series the answer has with a number.
func ask(t *testing.T, server, expr string) int {
	t.Helper()
	text, err := get(server + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return 0
	}
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

func TestEveryPanelShowsDataOfARealPrometheus(t *testing.T) {
	testenv.NeedTools(t, "prometheus", "prometheus")
	dir, cloud := simulate(t)
	driver := filepath.Join(bin, "cinder-csi-driver")
	controller, node := launchController(t, driver, dir), launchNode(t, driver, cloud)
	server := prometheus(t, controller, node)
	work(t, controller, node, 20)
	time.Sleep(2 * time.Second) // until the last numbers are scraped
	t.Logf("| %-10s | %-34s | %6s |", "dashboard", "panel", "series")
	for _, role := range []string{"controller", "node"} {
		for _, d := range ByRole[role] {
			for _, p := range d.Panels {
				found := 0
				for _, q := range p.Queries {
					expr := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "20s").Replace(q.expression())
					n := ask(t, server, expr)
					if n == 0 {
						t.Errorf("%s, %s: no data for %s", d.Name, p.Title, expr)
					}
					found += n
				}
				t.Logf("| %-10s | %-34s | %6d |", d.Name, p.Title, found)
			}
		}
	}
	checkRules(t, server)
}

// checkRules checks that the real Prometheus evaluates every rule without an error, and that no alert fires.
func checkRules(t *testing.T, server string) {
	t.Helper()
	text, err := get(server + "/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Name)
			if r.Health != "ok" || r.State == "firing" {
				t.Errorf("%s: %s, %s %s", r.Name, r.Health, r.State, r.LastError)
			}
		}
	}
	slices.Sort(names)
	if want := 22; len(names) != want {
		t.Errorf("want %d rules, Prometheus has %q", want, names)
	}
}
