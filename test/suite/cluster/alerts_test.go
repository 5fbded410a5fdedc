//go:build cluster

package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// factor divides every `for` of the rules. The thresholds in the expressions stay, and so do the minutes between two checks of the driver.
var factor = flag.Float64("factor", 30, "what divides the time that an alert waits")

const alertDistribution = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: alerts}
spec:
  clusterID: first
  kubernetesVersion: "1.37"
  volumeAttachLimit: 3
  monitoring: {kind: PodMonitor, alerts: true}
  images:
    registry: mirror.invalid
`

// TestAlerts has each new alert fire for its real cause: `make test-cluster CASE=alerts`. A real Prometheus scrapes the pods that the PodMonitors of the bundle
// select, with the rules of the bundle. Causes of one phase are there at the same time; only the alerts of the phase may fire.
func TestAlerts(t *testing.T) {
	c := running(t)
	c.namespace = "alerts"
	r := &recovery{cluster: c}
	r.empty(t)
	before := c.takeStock(t)
	t.Cleanup(func() { r.putRight(t) })
	t.Cleanup(func() { c.diagnose(t) })
	c.applyMonitoringCRDs(t)
	b := c.generate(t, "kustomize", alertDistribution)
	c.loadImages(t, b.objects(t, "kustomize"), map[string]bool{})
	b.follow(t, "The credentials")
	b.install(t)
	c.makeNamespace(t)
	a := &alerting{cluster: c, url: c.prometheus(t)}
	a.quiet(t)
	for _, phase := range alertPhases {
		t.Run(phase.name, func(t *testing.T) { a.play(t, phase.causes) })
	}
	c.deleteAll(t)
	c.kubectl(t, "delete", "namespace", c.namespace, atMost)
	b.uninstall(t)
	c.expectStock(t, before)
}

// cause is what makes alerts fire. repair may take long, and runs beside the observation.
type cause struct {
	name   string
	alerts []string
	begin  func(t *testing.T, c *cluster) (repair func() error)
}

// alertPhases have what needs the attacher before it crashes, and last what ends pods of the driver.
var alertPhases = []struct {
	name   string
	causes []cause
}{
	{"volumes and nodes", []cause{
		{"ext4 meets an error and becomes read-only", []string{"CinderCSIVolumeUnhealthy"}, breakFileSystem},
		{"a node is full, and its driver starts again", []string{"CinderCSINodeFull"}, fillNode},
		{"the registrar of a new node pod crashes", []string{"CinderCSINodeNotRegistered"}, breakRegistrar},
		{"the zone of a server is not that of its registration", []string{"CinderCSINodeZoneChanged"}, moveServer},
	}},
	{"sidecars and credentials", []cause{
		{"the attacher crashes in both pods", []string{"CinderCSISidecarAbsent", "CinderCSINoLeader"}, breakAttacher},
		{"the credential expires in three minutes", []string{"CinderCSICredentialExpires", "CinderCSICredentialsRefused"}, expireCredential},
	}},
	{"Keystone", []cause{{"Keystone is stopped", []string{"CinderCSICloudUnavailable"}, stopKeystone}}},
	{"network", []cause{{"no packet reaches the cloud", []string{"CinderCSICloudUnavailable"}, func(t *testing.T, c *cluster) func() error {
		restore := c.cutCloud(t)
		return func() error { restore(); return nil }
	}}}},
	{"power", []cause{{"a node with a controller pod loses its power", []string{"CinderCSIControllerDown", "CinderCSINodeAbsent"}, powerOff}}},
}

// alerting is the Prometheus of the test.
type alerting struct {
	*cluster
	url string
}

// observed is a cause while it is there and afterwards.
type observed struct {
	cause
	began, repaired time.Time
	fired, ended    map[string]time.Duration
	repair          func() error
	repairs         chan error
}

// play begins every cause of a phase, waits for its alerts, repairs it, and waits for their end.
func (a *alerting) play(t *testing.T, phase []cause) {
	var all []*observed
	var expected []string
	for _, c := range phase {
		o := &observed{cause: c, began: time.Now(), fired: map[string]time.Duration{}, ended: map[string]time.Duration{}, repairs: make(chan error, 1)}
		o.repair = c.begin(t, a.cluster)
		t.Logf("%s: began", c.name)
		all, expected = append(all, o), append(expected, c.alerts...)
	}
	others := map[string]bool{}
	look := func(done func(*observed) error) func() error {
		return func() error {
			firing := a.firing(t)
			for name := range firing {
				if !slices.Contains(expected, name) && !others[name] {
					others[name] = true
					t.Logf("fires too: %s %s", name, firing[name])
				}
			}
			var waits []string
			for _, o := range all {
				o.look(firing)
				if err := done(o); err != nil {
					waits = append(waits, err.Error())
				}
			}
			if len(waits) > 0 {
				return fmt.Errorf("%s", strings.Join(waits, "; "))
			}
			return nil
		}
	}
	// A cause whose alert does not come is repaired too, and the other phases run.
	testenv.Check(t, await(t.Context(), patience+2*time.Minute, look((*observed).hasFired)))
	for _, o := range all {
		o.startRepair()
	}
	testenv.Check(t, await(t.Context(), patience, look((*observed).hasEnded)))
	for _, o := range all {
		for _, alert := range o.alerts {
			fmt.Printf("measured: alert | %s | %s | %.0f | %.0f |\n", o.name, alert, o.fired[alert].Seconds(), o.ended[alert].Seconds())
		}
	}
}

// look notes which alerts of the cause have fired and ended. When all have fired, the repair begins.
func (o *observed) look(firing map[string]string) {
	for _, alert := range o.alerts {
		if _, seen := o.fired[alert]; firing[alert] != "" && !seen {
			o.fired[alert] = time.Since(o.began)
		}
	}
	if o.hasFired() == nil {
		o.startRepair()
	}
	for _, alert := range o.alerts {
		if _, seen := o.ended[alert]; firing[alert] == "" && !seen && !o.repaired.IsZero() {
			o.ended[alert] = time.Since(o.repaired)
		}
	}
}

func (o *observed) startRepair() {
	if o.repaired.IsZero() {
		o.repaired = time.Now()
		go func() { o.repairs <- o.repair() }()
	}
}

func (o *observed) hasFired() error {
	if len(o.fired) < len(o.alerts) {
		return fmt.Errorf("%s: %v of %q have fired", o.name, o.fired, o.alerts)
	}
	return nil
}

// hasEnded also waits for the repair.
func (o *observed) hasEnded() error {
	if len(o.ended) < len(o.alerts) {
		return fmt.Errorf("%s: %v of %q have ended", o.name, o.ended, o.alerts)
	}
	select {
	case err := <-o.repairs:
		o.repairs <- err
		return err
	default:
		return fmt.Errorf("%s: under repair", o.name)
	}
}

// firing are the alerts that fire, with the labels of one.
func (a *alerting) firing(t *testing.T) map[string]string {
	t.Helper()
	response := testenv.Value(http.Get(a.url + "/api/v1/alerts"))(t)
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	testenv.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	found := map[string]string{}
	for _, alert := range answer.Data.Alerts {
		if alert.State == "firing" {
			found[alert.Labels["alertname"]] = fmt.Sprint(alert.Labels)
		}
	}
	return found
}

// quiet waits until every target is there, and fails if an alert fires then.
func (a *alerting) quiet(t *testing.T) {
	t.Helper()
	eventually(t, patience, "Prometheus reads every container", func() error {
		up, down := a.count(t, "up == 1"), a.count(t, "up == 0")
		// Two controller pods with the ports of the driver and four sidecars, three nodes, and the leases.
		if want := 2*5 + len(nodes) + 1; up < want || down != 0 {
			return fmt.Errorf("want %d targets, %d are up and %d down", want, up, down)
		}
		return nil
	})
	holds(t, 10*time.Second, "no alert fires", func() error {
		if firing := a.firing(t); len(firing) > 0 {
			return fmt.Errorf("%v", firing)
		}
		return nil
	})
}

// count is how many series an expression has.
func (a *alerting) count(t *testing.T, expr string) int {
	t.Helper()
	request := testenv.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/api/v1/query", nil))(t)
	q := request.URL.Query()
	q.Set("query", expr)
	request.URL.RawQuery = q.Encode()
	response := testenv.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	var answer struct{ Data struct{ Result []any } }
	testenv.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	return len(answer.Data.Result)
}

func (c *cluster) applyMonitoringCRDs(t *testing.T) {
	t.Helper()
	var files []string
	for _, kind := range []string{"podmonitors", "prometheusrules"} {
		files = append(files, "-f", filepath.Join(c.repo, "bin", "crds", "monitoring.coreos.com_"+kind+".yaml"))
	}
	t.Cleanup(func() {
		if _, _, err := c.try(context.Background(), "", "kubectl", append([]string{"delete", "--ignore-not-found", atMost}, files...)...); err != nil {
			t.Error(err)
		}
	})
	c.kubectl(t, append([]string{"apply", "--server-side"}, files...)...)
	c.kubectl(t, "wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com", atMost)
}

// dividedRules are the rules of the bundle as the API server has them, in a file of Prometheus. Every `for` is divided by the factor.
func (c *cluster) dividedRules(t *testing.T) string {
	t.Helper()
	var list struct {
		Items []struct {
			Spec struct {
				Groups []struct {
					Name  string           `json:"name"`
					Rules []map[string]any `json:"rules"`
				} `json:"groups"`
			}
		}
	}
	if err := json.Unmarshal([]byte(c.kubectl(t, "get", "prometheusrules", "--all-namespaces", "-o", "json")), &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%d PrometheusRules: %v", len(list.Items), err)
	}
	var groups []any
	for _, item := range list.Items {
		for _, group := range item.Spec.Groups {
			for _, rule := range group.Rules {
				wait, given := rule["for"].(string)
				if !given {
					continue
				}
				d := testenv.Value(time.ParseDuration(wait))(t)
				rule["for"] = fmt.Sprintf("%dms", int(d.Seconds()*1000 / *factor))
			}
			groups = append(groups, group)
		}
	}
	text := testenv.Value(yaml.Marshal(map[string]any{"groups": groups}))(t)
	return string(text)
}

// prometheus runs Prometheus on this machine. A file names the ports of the pods, as the Prometheus operator would from the PodMonitors.
func (c *cluster) prometheus(t *testing.T) (url string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		testfile.Write(t, path+".new", text, 0o600)
		testenv.Must(t, os.Rename(path+".new", path))
	}
	write("rules.yaml", c.dividedRules(t))
	leases := c.serveLeases(t)
	write("targets.json", c.targets(t.Context()))
	write("prometheus.yml", fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- {job_name: pods, file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]}
- {job_name: leases, scrape_interval: 5s, honor_labels: true, static_configs: [{targets: [%q]}]}
`, leases))
	address := listen(t, nil)
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	log := testenv.Value(os.Create(filepath.Join(dir, "log")))(t)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("`make test-monitoring-tools` installs Prometheus: %v", err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	go func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		path := filepath.Join(dir, "targets.json")
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if text := c.targets(context.Background()); text != "" && os.WriteFile(path+".new", []byte(text), 0o600) == nil {
				_ = os.Rename(path+".new", path)
			}
		}
	}()
	url = "http://" + address
	eventually(t, patience, "Prometheus is ready", func() error {
		response, err := http.Get(url + "/-/ready")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", response.Status)
		}
		return nil
	})
	return url
}

// listen serves on a free port of this machine; without a handler it only names the port.
func listen(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	listener := testenv.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	if handler == nil {
		defer listener.Close()
		return listener.Addr().String()
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// serveLeases has the one series of kube-state-metrics that a new alert needs. The Go proxy does not serve the program itself.
func (c *cluster) serveLeases(t *testing.T) (address string) {
	t.Helper()
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, _, err := c.try(r.Context(), "", "kubectl", "get", "leases", "--namespace="+namespaces["controller"], "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.spec.renewTime}{"\n"}{end}`)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for line := range strings.Lines(out) {
			name, renewed, _ := strings.Cut(strings.TrimSpace(line), " ")
			if at, err := time.Parse(time.RFC3339Nano, renewed); err == nil {
				fmt.Fprintf(w, "kube_lease_renew_time{lease=%q,namespace=%q} %d\n", name, namespaces["controller"], at.Unix())
			}
		}
	}))
}

// target is an entry of Prometheus' file of targets.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// targets are the ports that the PodMonitors name, of the pods that they select, with the labels that the Prometheus operator gives. Empty: not read.
func (c *cluster) targets(ctx context.Context) string {
	var monitors struct {
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Spec     struct {
				Selector            struct{ MatchLabels map[string]string }
				PodMetricsEndpoints []struct{ Port string }
			}
		}
	}
	var pods struct {
		Items []struct {
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Spec struct {
				Containers []struct {
					Name  string
					Ports []struct {
						Name          string
						ContainerPort int
					}
				}
			}
			Status struct{ Phase, PodIP string }
		}
	}
	for into, args := range map[any][]string{&monitors: {"get", "podmonitors"}, &pods: {"get", "pods"}} {
		out, _, err := c.try(ctx, "", "kubectl", append(args, "--all-namespaces", "-o", "json")...)
		if err != nil || json.Unmarshal([]byte(out), into) != nil {
			return ""
		}
	}
	all := []target{}
	for _, m := range monitors.Items {
		for _, p := range pods.Items {
			if p.Metadata.Namespace != m.Metadata.Namespace || !hasLabels(p.Metadata.Labels, m.Spec.Selector.MatchLabels) || p.Status.PodIP == "" ||
				p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded" {
				continue
			}
			for _, container := range p.Spec.Containers {
				for _, port := range container.Ports {
					if !slices.ContainsFunc(m.Spec.PodMetricsEndpoints, func(e struct{ Port string }) bool { return e.Port == port.Name }) {
						continue
					}
					all = append(all, target{[]string{net.JoinHostPort(p.Status.PodIP, fmt.Sprint(port.ContainerPort))}, map[string]string{
						"namespace": p.Metadata.Namespace, "pod": p.Metadata.Name, "container": container.Name, "endpoint": port.Name,
						"job": m.Metadata.Namespace + "/" + m.Metadata.Name,
					}})
				}
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	return string(text)
}

func hasLabels(labels, want map[string]string) bool {
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// secretText is the clouds.yaml of the driver.
func (c *cluster) secretText(t *testing.T) string {
	t.Helper()
	text := testenv.Value(base64.StdEncoding.DecodeString(c.kubectl(t, "get", "secret", "cinder-csi-credentials", "--namespace="+namespaces["controller"], "-o", `jsonpath={.data.clouds\.yaml}`)))(t)
	return string(text)
}
