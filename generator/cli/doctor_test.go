package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// findings runs doctor and gives its report by check and severity.
func findings(t *testing.T, b *bed, want int, args ...string) (doctor.Report, map[string]doctor.Severity) {
	t.Helper()
	stdout, stderr, code := b.run(t, append([]string{"doctor", "-o", "json"}, args...)...)
	if code != want {
		t.Fatalf("want exit %d, got %d: %s%s", want, code, stdout, stderr)
	}
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	worst := map[string]doctor.Severity{}
	for _, f := range r.Findings {
		if worst[f.ID] != doctor.Error {
			worst[f.ID] = f.Severity
		}
	}
	return r, worst
}

const ownImage = "spec: {images: {driver: {registry: registry.example, repository: driver, tag: v1}}}"

func TestDoctorPrintsFindingsAndAdvice(t *testing.T) {
	b := newBed(t)
	stdout, stderr, code := b.run(t, "doctor", "--simulated")
	if code != Failure || !strings.Contains(stderr, "1 of 12 findings are errors") {
		t.Errorf("want one error, got %d: %s", code, stderr)
	}
	golden(t, "doctor.table", stdout)
}

func TestDoctorExitsZeroWithWarningsOnly(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "config.yaml", ownImage)
	r, worst := findings(t, b, OK, "--simulated", "--config", config)
	if worst["image"] != doctor.Warning || r.Count(doctor.Error) != 0 {
		t.Errorf("want a warning, got %+v", r.Findings)
	}
}

func TestDoctorReadsTheClusterOfTheKubeconfig(t *testing.T) {
	b := newBed(t)
	b.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"gitVersion": "v1.35.0"}`))
	})
	config := b.file(t, "config.yaml", ownImage)
	r, worst := findings(t, b, Failure, "--simulated", "--config", config, "--context", "prod")
	if !strings.HasPrefix(r.Cluster, "context prod at http://127.0.0.1") || worst["cluster.version"] != doctor.OK || worst["cluster.secret"] != doctor.Error || worst["cluster.snapshots"] != doctor.Error {
		t.Errorf("want the Secret and the CRDs to be missing, got %+v", r)
	}
	monitored := b.file(t, "monitored.yaml", strings.TrimSuffix(ownImage, "}")+", monitoring: {kind: PodMonitor, alerts: true}}")
	if r, worst := findings(t, b, Failure, "--simulated", "--config", monitored, "--context", "prod"); worst["cluster.monitoring"] != doctor.Error {
		t.Errorf("want the CRDs of the Prometheus operator to be missing, got %+v", r)
	}
	if r, _ := findings(t, b, OK, "--simulated", "--config", config, "--skip-cluster"); r.Cluster != "" {
		t.Errorf("want no cluster, got %+v", r)
	}
}

func TestDoctorReportsALoginThatFailsAsAFinding(t *testing.T) {
	b := newBed(t)
	b.sim.SetFault(openstacksim.Fault{Method: "POST", Path: "/identity/v3/auth/tokens", Status: http.StatusUnauthorized})
	if _, worst := findings(t, b, Failure, "--os-cloud", "sim-demo"); worst["cloud.login"] != doctor.Error {
		t.Errorf("want an error of the login, got %v", worst)
	}
}

func TestDoctorReportsAnOutageInsteadOfStoppingAtIt(t *testing.T) {
	b := newBed(t)
	b.sim.SetFault(openstacksim.Fault{Method: "GET", Path: "/volume/v3/*/types", Status: http.StatusServiceUnavailable})
	r, worst := findings(t, b, Failure, "--os-cloud", "sim-demo")
	if worst["cloud.types"] != doctor.Error || worst["cloud.quota"] != doctor.OK || worst["image"] != "" {
		t.Errorf("want the other checks of the cloud, and no bundle, got %+v", r)
	}
}

func TestDoctorHelpIsThatOfDoctor(t *testing.T) {
	b := newBed(t)
	if got := b.ok(t, "doctor", "--help"); !strings.Contains(got, "Checks the cloud") || !strings.Contains(got, "--kubeconfig") {
		t.Errorf("want the help of doctor, got %s", got)
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--simulated", "-o", "yaml"}, {"doctor", "--simulated", "--target", "x"}, {"doctor", "--inventory", "x"}, {"doctor", "volumes"}} {
		if _, stderr, code := b.run(t, args...); code != Usage {
			t.Errorf("%v: want exit 64, got %d: %s", args, code, stderr)
		}
	}
}

func TestDoctorOfAHostedControlPlaneLeavesOutTheTwoClusters(t *testing.T) {
	b := newBed(t)
	b.api = http.NotFoundHandler()
	r, _ := findings(t, b, Failure, "--simulated", "--target", "hypershift")
	if r.Cluster != "" {
		t.Errorf("want no cluster checked, got %+v", r)
	}
}

// The generator reports about a login what the driver would report.
func TestALoginThatTheDriverRefusesIsNamedAsTheDriverDoes(t *testing.T) {
	compute := `"url":"` + address + `/compute/v2.1","region":"Region`
	for name, test := range map[string]struct{ old, changed, says string }{
		"no Nova":                 {`"type":"compute"`, `"type":"moved"`, `the catalog of cloud sim-demo has no compute service for interface public`},
		"services of two regions": {`"region_id":"RegionOne",` + compute + "One", `"region_id":"RegionTwo",` + compute + "Two", "compute is of region RegionTwo, and block-storage of region RegionOne"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.file(t, "clouds.yaml", strings.ReplaceAll(string(b.sim.CloudsYAML(address)), "    region_name: RegionOne\n", ""))
			b.wrap = func(way http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					resp, err := way.RoundTrip(r)
					if err == nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/auth/tokens") {
						text, _ := io.ReadAll(resp.Body)
						resp.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(text), test.old, test.changed)))
					}
					return resp, err
				})
			}
			for _, command := range []string{"inspect", "doctor"} {
				stdout, stderr, _ := b.run(t, command, "--os-cloud", "sim-demo")
				text := strings.Join(strings.Fields(strings.ReplaceAll(stdout+stderr, printable.Mark, "")), " ") // the table wraps
				if !strings.Contains(text, test.says) {
					t.Errorf("%s: want %q, got %s", command, test.says, text)
				}
			}
		})
	}
}
