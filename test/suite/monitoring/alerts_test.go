//go:build monitoring

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// healthy is how many minutes each scenario runs without a fault first. No alert may fire then, nor after the repair.
const healthy = 15

// scenarios are one for each alert, and one without faults. Each begins the fault and returns the repair.
var scenarios = []struct {
	name    string
	alert   string // empty: none
	minutes int    // between fault and repair
	begin   func(s *stage) (repair func())
}{
	{"nothing is wrong", "", 30, func(*stage) func() { return func() {} }},
	{"Nova refuses an attach", "CinderCSIAttachStuck", 30, func(s *stage) func() {
		id := s.volume("attached")
		repair := s.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/compute/**", Contains: "volumeAttachment", Status: http.StatusInternalServerError})
		s.eventually(func(ctx context.Context) error { return s.attach(ctx, id) })
		return repair
	}},
	{"a volume stays in detaching", "CinderCSIAttachStuck", 30, func(s *stage) func() {
		id := s.volume("detached")
		if err := s.attach(s.ctx, id); err != nil {
			s.t.Fatal(err)
		}
		repair := s.sim.SetFault(openstacksim.Fault{Operation: openstacksim.Detach, Slow: true, Delay: 35 * time.Minute})
		s.eventually(func(ctx context.Context) error { return s.detach(ctx, id) })
		return repair
	}},
	{"Cinder fails to delete a volume", "CinderCSIOperationStuck", 30, func(s *stage) func() {
		id := s.volume("deleted")
		repair := s.sim.SetFault(openstacksim.Fault{Method: http.MethodDelete, Path: "/volume/v3/*/volumes/*", Status: http.StatusInternalServerError})
		s.eventually(func(ctx context.Context) error { return s.delete(ctx, id) })
		return repair
	}},
	{"the application credential is revoked", "CinderCSICredentialsRefused", 12, func(s *stage) func() {
		login := s.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/identity/v3/auth/tokens", Status: http.StatusUnauthorized})
		token := s.sim.SetFault(openstacksim.Fault{Path: "/volume/**", Status: http.StatusUnauthorized})
		return func() { login(); s.pass(2); token() } // a new token is needed before requests work again
	}},
	{"Cinder answers with HTTP 429 again and again", "CinderCSIThrottled", 25, func(s *stage) func() {
		return s.sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/**", Status: http.StatusTooManyRequests, Times: 0, Skip: 0, Header: http.Header{"Retry-After": {"1"}}})
	}},
	{"Cinder answers with HTTP 503 and Retry-After, and is not overloaded", "CinderCSICloudUnavailable", 20, func(s *stage) func() {
		return s.sim.SetFault(openstacksim.Fault{Path: "/volume/**", Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}})
	}},
	{"Keystone answers with HTTP 503", "CinderCSICloudUnavailable", 10, func(s *stage) func() {
		return s.sim.SetFault(openstacksim.Fault{Path: "/identity/**", Status: http.StatusServiceUnavailable})
	}},
	{"the cloud cannot be reached", "CinderCSICloudUnavailable", 10, func(s *stage) func() {
		s.unreachable.Store(true)
		return func() { s.unreachable.Store(false) }
	}},
	{"the application credential expires in three days", "CinderCSICredentialExpires", 45, func(s *stage) func() {
		good, err := os.ReadFile(s.controller.conf)
		if err != nil {
			s.t.Fatal(err)
		}
		a := s.sim.AddApplicationCredential(openstacksim.ApplicationCredential{
			Name: "short", User: "demo", Project: "demo", Roles: []string{"member"}, ExpiresAt: time.Now().Add(72 * time.Hour),
		})
		s.controller.write(s.t, fmt.Sprintf("[Global]\nauth-url = %s/identity/v3\napplication-credential-id = %s\napplication-credential-secret = %s\n", inprocess.URL, a.ID, a.Secret))
		return func() { s.controller.write(s.t, string(good)) }
	}},
	{"the attacher works in no controller pod", "CinderCSISidecarAbsent", 25, func(s *stage) func() {
		s.down["cinder-csi-controller-0 attacher"], s.down["cinder-csi-controller-1 attacher"] = true, true
		return func() { clear(s.down) }
	}},
	{"one controller pod is down", "CinderCSIControllerDown", 25, func(s *stage) func() {
		for _, endpoint := range append([]string{"driver"}, sidecars...) {
			s.down["cinder-csi-controller-1 "+endpoint] = true
		}
		return func() { clear(s.down) }
	}},
	{"no provisioner leads", "CinderCSINoLeader", 30, func(s *stage) func() {
		s.leases[leases[0]] = s.minutes
		return func() { clear(s.leases) }
	}},
	{"somebody writes a broken cloud.conf for the controller", "CinderCSIConfigurationNotLoaded", 20, func(s *stage) func() { return s.breakConf(s.controller) }},
	{"somebody creates a volume with the name of a claim", "CinderCSIDuplicates", 3, func(s *stage) func() {
		s.volume("twice")
		s.admin.Cinder(http.MethodPost, "/volumes", `{"volume":{"name":"twice","size":1}}`)
		time.Sleep(time.Second) // virtual: the volume becomes available
		s.volume("twice")
		return func() { s.pass(60) } // an hour of silence ends the alert
	}},
	{"all volumes of the quota are used", "CinderCSIQuotaNearlyUsed", 20, func(s *stage) func() {
		for i := range 10 {
			s.volume(fmt.Sprintf("full-%d", i))
		}
		s.sim.SetQuota("demo", "volumes", 10)
		return func() { s.sim.SetQuota("demo", "volumes", 1000) }
	}},
	{"no controller pod is there", "CinderCSIControllerAbsent", 20, func(s *stage) func() {
		s.controller.state = gone
		return func() { s.controller.state = serving }
	}},
	{"the controller does not answer", "CinderCSIControllerAbsent", 20, func(s *stage) func() {
		s.controller.state = refusing
		return func() { s.controller.state = serving }
	}},
	{"no node pod is there", "CinderCSINodesAbsent", 25, func(s *stage) func() {
		s.nodes[0].state, s.nodes[1].state = gone, gone
		return func() { s.nodes[0].state, s.nodes[1].state = serving, serving }
	}},
	{"one node does not answer", "CinderCSINodeAbsent", 25, func(s *stage) func() {
		s.nodes[1].state = refusing
		return func() { s.nodes[1].state = serving }
	}},
	{"kubelet stages a volume whose disk does not come", "CinderCSINodeOperationStuck", 30, func(s *stage) func() {
		staging := filepath.Join(s.t.TempDir(), "staging")
		ctx, stop := context.WithCancel(s.ctx)
		s.eventually(func(attempt context.Context) error {
			if ctx.Err() != nil { // the pod is deleted, and kubelet stops
				return nil
			}
			_, err := csi.NewNodeClient(s.nodes[0].driver).NodeStageVolume(attempt, &csi.NodeStageVolumeRequest{
				VolumeId: "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b", StagingTargetPath: staging, VolumeCapability: csitest.Mounted(""),
			})
			return err
		})
		return func() { stop(); s.pass(15) } // the driver lists the operation for ten minutes more
	}},
	{"a node starts with two volumes, and kubelet does not call its driver", "CinderCSINodeNotRegistered", 25, func(s *stage) func() {
		s.plug("vdb", "vdc")
		s.nodes[0].state = gone // of two nodes with one sysfs, which are full now
		s.nodes[1].state = gone
		s.nodes = append(s.nodes, s.launchNode(2))
		return func() {
			s.register(s.nodes[2])
			s.unplug("vdb")
		}
	}},
	{"the server of a node is moved to another zone", "CinderCSINodeZoneChanged", 25, func(s *stage) func() {
		// The file with the first zone is beside the socket, and a driver in this process has none.
		s.override["cinder-csi-node-1 cinder_csi_node_zone_changed"] = "1"
		return func() { clear(s.override) }
	}},
	{"the kernel makes the file system of a volume read-only", "CinderCSIVolumeUnhealthy", 10, func(s *stage) func() {
		const id = "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"
		path := s.t.TempDir()
		ask := func(options string) {
			table := fmt.Sprintf("36 35 254:16 / %s rw,relatime shared:1 - ext4 /dev/vdb %s\n", path, options)
			if err := os.WriteFile(s.machine.Path("proc/self/mountinfo"), []byte(table), 0o600); err != nil {
				s.t.Fatal(err)
			}
			_, _ = csi.NewNodeClient(s.nodes[0].driver).NodeGetVolumeStats(s.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: path})
		}
		ask("ro")
		return func() { ask("rw") }
	}},
	{"two volumes are on a node whose limit is two", "CinderCSINodeFull", 20, func(s *stage) func() {
		s.plug("vdb", "vdc")
		return func() { s.unplug("vdb") }
	}},
	{"somebody writes a broken cloud.conf for the nodes", "CinderCSINodeConfigurationNotLoaded", 20, func(s *stage) func() { return s.breakConf(s.nodes[0]) }},
	{"the drift check finds a difference", "CinderCSIDrift", 20, func(s *stage) func() {
		// A Job serves no metrics: these are the series of kube-state-metrics, and not recorded.
		for i := range healthy + 20 + healthy {
			scheduled := max(i-i%15, 1) * 60
			success := scheduled
			if i >= healthy && i < healthy+20 {
				success = 1
			}
			for _, replica := range []string{"a", "b"} {
				labels := fmt.Sprintf(`{cluster="east",namespace="cinder-csi",cronjob="cinder-csi-drift-check",instance=%q}`, replica)
				s.series["kube_cronjob_status_last_schedule_time"+labels] = append(s.series["kube_cronjob_status_last_schedule_time"+labels], fmt.Sprint(scheduled))
				s.series["kube_cronjob_status_last_successful_time"+labels] = append(s.series["kube_cronjob_status_last_successful_time"+labels], fmt.Sprint(success))
			}
		}
		return func() {}
	}},
}

// plug adds virtio disks of volumes to the nodes.
func (s *stage) plug(names ...string) {
	for i, name := range names {
		serial := []string{"0a9f1b2c-3d4e-4f50-8", "b7e2d8c4-19f3-4a6e-9"}[i]
		s.machine.Sysfs(s.t, name, map[string]string{"serial": serial, "dev": fmt.Sprintf("254:%d\n", 16*(i+1))})
	}
}

func (s *stage) unplug(name string) {
	if err := os.RemoveAll(filepath.Join(s.machine.Sys, "block", name)); err != nil {
		s.t.Error(err)
	}
}

func (s *stage) breakConf(p *pod) (repair func()) {
	good, err := os.ReadFile(p.conf)
	if err != nil {
		s.t.Fatal(err)
	}
	p.write(s.t, "[Global\n")
	return func() { p.write(s.t, string(good)) }
}

// live is the normal work of a cluster: a claim that comes and goes, and the provisioner that asks for the capacity.
func (s *stage) live() {
	go func() {
		for i := 0; s.ctx.Err() == nil; i++ {
			ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
			if id, err := s.create(ctx, fmt.Sprintf("life-%d", i)); err == nil {
				s.eventually(func(ctx context.Context) error { return s.delete(ctx, id) })
			}
			_, _ = s.rpc().GetCapacity(ctx, &csi.GetCapacityRequest{})
			cancel()
			select {
			case <-time.After(20 * time.Second):
			case <-s.ctx.Done():
			}
		}
	}()
}

func TestEveryAlertFiresInItsScenarioAndOnlyThere(t *testing.T) {
	testenv.NeedTools(t, "promtool", "prometheus")
	dir := t.TempDir()
	var files []string
	missing := map[string]bool{}
	for _, file := range rules {
		path := filepath.Join(dir, file+".yaml")
		testfile.Write(t, path, rulesText(t, file), 0o600)
		files = append(files, path)
		for _, group := range readRules(t, file).Groups {
			for _, r := range group.Rules {
				missing[r.Alert] = true
			}
		}
	}
	t.Logf("| %-68s | %-35s | %8s | %7s | %s |", "scenario", "alert", "fires", "ends", "series")
	var west *stage // a second cluster in the same ruler, in which nothing is wrong
	for _, c := range scenarios {
		delete(missing, c.alert)
		t.Run(c.name, func(t *testing.T) {
			var s *stage
			repaired := 0
			synctest.Test(t, func(t *testing.T) {
				s = newStage(t)
				s.live()
				s.pass(healthy)
				repair := c.begin(s)
				s.pass(c.minutes)
				repaired = s.minutes
				repair()
				s.pass(healthy)
			})
			if c.alert == "" {
				west = s
			}
			if !strings.HasSuffix(c.alert, "Absent") || c.alert == "CinderCSINodeAbsent" || c.alert == "CinderCSISidecarAbsent" {
				s.besides(west) // absent() sees a series of any cluster
			}
			fires := alertsOf(t, dir, files, s)
			want := map[string]bool{}
			if c.alert != "" {
				want[c.alert] = true
			}
			for alert, at := range fires {
				if !want[alert] {
					t.Errorf("%s fires in minute %d", alert, at.first)
				}
			}
			at := fires[c.alert]
			if c.alert != "" && (at.first < healthy || at.last >= s.minutes-1) {
				t.Errorf("want %s to fire in minutes %d to %d, got %+v; all: %v", c.alert, healthy, repaired+healthy, at, fires)
			}
			fired, ended := "-", "-"
			if c.alert != "" {
				fired, ended = fmt.Sprintf("%d min", at.first-healthy), fmt.Sprintf("%d min", at.last+1-healthy)
			}
			t.Logf("| %-68s | %-35s | %8s | %7s | %d |", c.name, c.alert, fired, ended, len(s.series))
		})
	}
	for alert := range missing {
		t.Errorf("no scenario is for %s", alert)
	}
}

// besides adds the series of another cluster in which nothing is wrong, for as long as this stage runs.
func (s *stage) besides(healthy *stage) {
	for series, values := range healthy.series {
		if name := strings.Replace(series, `cluster="east"`, `cluster="west"`, 1); name != series && len(values) > 0 {
			for len(values) < s.minutes {
				last := values[len(values)-1]
				if strings.HasPrefix(series, "kube_lease_renew_time") && strings.Contains(series, "cinder-csi\"") {
					last = fmt.Sprint(60 * len(values))
				}
				values = append(slices.Clip(values), last)
			}
			s.series[name] = values[:s.minutes]
		}
	}
}

// span is the first and the last minute in which an alert fires.
type span struct{ first, last int }

// alertsOf asks promtool which alerts the rules give on the recorded series, minute by minute.
func alertsOf(t *testing.T, dir string, files []string, s *stage) map[string]span {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n", strings.Join(files, ", "))
	for _, series := range slices.Sorted(maps.Keys(s.series)) {
		values := strings.Join(s.series[series], " ")
		if len(s.series[series]) < s.minutes {
			values += " stale" // as Prometheus marks a series that a scrape no longer has
		}
		fmt.Fprintf(&text, "  - {series: '%s', values: '%s'}\n", strings.ReplaceAll(series, "'", "''"), values)
	}
	text.WriteString("  promql_expr_test:\n")
	for minute := range s.minutes {
		// No sample is expected, so that promtool prints those that there are.
		fmt.Fprintf(&text, "  - {expr: 'group by (alertname, cluster) (ALERTS{alertstate=\"firing\"})', eval_time: %dm, exp_samples: []}\n", minute)
	}
	path := filepath.Join(dir, "test.yaml")
	testfile.Write(t, path, text.String(), 0o600)
	out, err := exec.Command("promtool", "test", "rules", path).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "alertname") {
		t.Fatalf("promtool: %v\n%.2000s", err, out)
	}
	fires := map[string]span{}
	minute := 0
	for line := range strings.Lines(string(out)) {
		if _, after, found := strings.Cut(line, "time: "); found {
			var at time.Duration
			at, err = time.ParseDuration(strings.TrimSuffix(strings.TrimSpace(after), ","))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			minute = int(at.Minutes())
		}
		if strings.Contains(line, `cluster="west"`) {
			t.Errorf("minute %d: an alert about the cluster in which nothing is wrong: %s", minute, line)
		}
		for _, part := range strings.Split(line, `alertname="`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			at, known := fires[name]
			if !known {
				at.first = minute
			}
			at.last = max(at.last, minute)
			fires[name] = at
		}
	}
	return fires
}
