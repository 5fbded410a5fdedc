//go:build monitoring

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/tools/pictures"
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
	log := testenv.Value(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	cmd.Stderr, cmd.Stdout = log, log
	testenv.Must(t, cmd.Start())
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
	listener := testenv.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

// until repeats check in real time, because the programs are real.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, 100*time.Millisecond, what, check)
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

// launch runs a driver.
func launch(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{web: freeAddress(t)}
	socket := filepath.Join(t.TempDir(), "csi.sock")
	p.pid = start(t, program, append([]string{"--endpoint=unix://" + socket, "--http-endpoint=" + p.web, "--cluster=test"}, args...)...).Process.Pid
	until(t, "the driver", func() error { _, err := get("http://" + p.web + "/metrics"); return err })
	p.ClientConn = testenv.Value(grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
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
		testenv.Must(t, os.MkdirAll(machine.Path(dir), 0o755))
	}
	testfile.Write(t, machine.Path("proc/self/mountinfo"), "", 0o600)
	p := launch(t, program, "--provide-controller-service=false", "--sys-root="+machine.Sys, "--dev-root="+machine.Dev, "--proc-root="+machine.Path("proc"),
		"--metadata-url="+cloud+"/metadata/node-az1", "--cloud-config="+machine.Path("no.conf"))
	testenv.Value(csi.NewNodeClient(p).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t)
	return p
}

func createOn(ctx context.Context, p *process, name string) (string, error) {
	made, err := csi.NewControllerClient(p).CreateVolume(ctx, csitest.Claim(name))
	return made.GetVolume().GetVolumeId(), err
}

// target is what Prometheus scrapes, with the labels that the operator would give it.
type target struct{ web, namespace, pod, instance string }

// prometheus runs Debian's Prometheus with the rules. It returns its URL.
func prometheus(t *testing.T, every time.Duration, targets ...target) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	var files []string
	for _, file := range rules {
		path := filepath.Join(dir, file+".yaml")
		testfile.Write(t, path, rulesText(t, file), 0o600)
		files = append(files, path)
	}
	config := fmt.Sprintf(`global: {scrape_interval: %s, evaluation_interval: %s}
rule_files: [%s]
scrape_configs:
- job_name: cinder-csi
  static_configs:
`, every, every, strings.Join(files, ", "))
	for _, s := range targets {
		config += fmt.Sprintf("  - {targets: [%q], labels: {namespace: %s, pod: %s, instance: %q}}\n", s.web, s.namespace, s.pod, s.instance)
	}
	path := filepath.Join(dir, "prometheus.yml")
	testfile.Write(t, path, config, 0o600)
	start(t, "prometheus", "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	until(t, "Prometheus", func() error { _, err := get("http://" + address + "/-/ready"); return err })
	return "http://" + address
}

// ask evaluates an expression for each step from the beginning of the run to its end, and returns the series that have a number.
func ask(t *testing.T, server, expr string, begin time.Time, seconds, step int) (series []pictures.Series) {
	t.Helper()
	query := url.Values{
		"query": {expr}, "start": {fmt.Sprint(begin.Unix() + int64(step))}, "end": {fmt.Sprint(begin.Unix() + int64(seconds))}, "step": {fmt.Sprint(step)},
	}
	text, err := get(server + "/api/v1/query_range?" + query.Encode())
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return nil
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	testenv.Must(t, json.Unmarshal(text, &answer))
	for _, r := range answer.Data.Result {
		numbers := make([]float64, seconds/step)
		for i := range numbers {
			numbers[i] = math.NaN()
		}
		some := false
		for _, v := range r.Values {
			at := (int64(v[0].(float64))-begin.Unix())/int64(step) - 1
			numbers[at] = testenv.Value(strconv.ParseFloat(v[1].(string), 64))(t)
			some = some || !math.IsNaN(numbers[at])
		}
		if some {
			delete(r.Metric, "__name__")
			series = append(series, pictures.Series{Labels: r.Metric, Values: pictures.Values(numbers)})
		}
	}
	return series
}

// length is how long a run is, how often Prometheus scrapes it, and for which times the panels are asked.
type length struct {
	seconds, step int
	scrape        time.Duration
	rate          string
}

// TestEveryPanelShowsDataOfARealPrometheus asks every panel about a run with faults. With -update the run is long enough to look at, and its answers
// are kept for the pictures of the dashboards.
func TestEveryPanelShowsDataOfARealPrometheus(t *testing.T) {
	testenv.NeedTools(t, "prometheus", "prometheus")
	run := length{seconds: 60, step: 5, scrape: time.Second, rate: "20s"}
	if *update {
		run = length{seconds: 480, step: 8, scrape: 2 * time.Second, rate: "32s"} // the timeout of go test is ten minutes
	}
	w := newWorkload(t, run.scrape)
	begin := time.Now()
	recording := pictures.Recording{Seconds: run.seconds, Step: run.step, Faults: w.play(run.seconds), Answers: map[string][]pictures.Series{}}
	t.Logf("| %-10s | %-34s | %6s |", "dashboard", "panel", "series")
	for _, role := range []string{"controller", "node"} {
		for _, d := range ByRole[role] {
			for _, p := range d.Panels {
				found := 0
				for _, q := range p.Queries {
					expr := strings.NewReplacer("$namespace", ".*", "$__rate_interval", run.rate).Replace(q.expression())
					series := ask(t, w.prometheus, expr, begin, run.seconds, run.step)
					if len(series) == 0 {
						t.Errorf("%s, %s: no data for %s", d.Name, p.Title, expr)
					}
					recording.Answers[q.expression()] = series
					found += len(series)
				}
				t.Logf("| %-10s | %-34s | %6d |", d.Name, p.Title, found)
			}
		}
	}
	checkRules(t, w.prometheus)
	if *update && !t.Failed() {
		text := testenv.Value(json.MarshalIndent(recording, "", " "))(t)
		testfile.Write(t, filepath.Join("../../..", pictures.RecordingFile), append(text, '\n'), 0o644)
		t.Log("`make pictures` draws the new recording")
	}
}

// checkRules checks that the real Prometheus evaluates every rule without an error, and that no alert fires.
func checkRules(t *testing.T, server string) {
	t.Helper()
	text := testenv.Value(get(server + "/api/v1/rules"))(t)
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
	}
	testenv.Must(t, json.Unmarshal(text, &answer))
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
