package monitoring

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the dashboards of the chart, and what the panels show")

const chart = "../../../charts/cinder-csi"

// rules are the files with alerts.
var rules = []string{"capacity", "controller", "drift-check", "node"}

// rule is one alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

// readRules reads the groups of a file.
func readRules(t *testing.T, file string) (groups ruleFile) {
	t.Helper()
	testenv.Must(t, yaml.UnmarshalStrict(rulesText(t, file), &groups))
	return groups
}

// rulesText is a file with alerts, as promtool reads it too.
func rulesText(t *testing.T, file string) []byte {
	t.Helper()
	return testfile.Read(t, filepath.Join(chart, "alerts", file+".yaml"))
}

func dashboardText(t *testing.T, d Dashboard) string {
	t.Helper()
	text := testenv.Value(d.JSON())(t)
	return string(text)
}

func TestTheDashboardsOfTheChartAreCurrent(t *testing.T) {
	want := map[string]string{}
	for role, dashboards := range ByRole {
		for _, d := range dashboards {
			want[filepath.Join(chart, "dashboards", role, "cinder-csi-"+d.Name+".json")] = dashboardText(t, d)
		}
	}
	for path, text := range want {
		if *update {
			testfile.Write(t, path, text, 0o644)
			continue
		}
		got := testfile.Read(t, path)
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s is not current; go test ./test/suite/monitoring -update writes it (-want +got):\n%s", path, diff)
		}
	}
}

var metricName = regexp.MustCompile(`\b(?:cinder_csi|openstack_api|kube|process)_[a-z_]+`)

// foreign are the series of others that an expression may use.
var foreign = map[string]string{
	"kube_cronjob_status_last_schedule_time": "kube-state-metrics", "kube_cronjob_status_last_successful_time": "kube-state-metrics",
	"kube_lease_renew_time":         "kube-state-metrics",
	"process_resident_memory_bytes": "every Go process",
}

func TestEveryMetricOfAlertsAndDashboardsExists(t *testing.T) {
	text := testfile.Text(t, "../../../docs/reference/metrics.md")
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+)").FindAllStringSubmatch(text, -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			known[row[1]+"_bucket"], known[row[1]+"_count"], known[row[1]+"_sum"] = true, true, true
		}
	}
	for at, expr := range expressions(t) {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 && !strings.Contains(expr, "up{") {
			t.Errorf("%s uses no metric: %s", at, expr)
		}
		for _, name := range names {
			if !known[name] && foreign[name] == "" {
				t.Errorf("%s: docs/reference/metrics.md has no metric %s", at, name)
			}
		}
	}
}

// expressions are all expressions, by the place that has them.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range rules {
		for _, group := range readRules(t, file).Groups {
			for _, r := range group.Rules {
				all[file+" "+r.Alert] = r.Expr
			}
		}
	}
	for _, dashboards := range ByRole {
		for _, d := range dashboards {
			for _, p := range d.Panels {
				for i, q := range p.Queries {
					all[fmt.Sprintf("dashboard %s, panel %q, query %d", d.Name, p.Title, i+1)] = q.expression()
				}
			}
		}
	}
	return all
}

// severities are those of Kubernetes' own alerts. Prometheus' Alertmanager of OpenShift routes by them.
var severities = []string{"critical", "warning", "info"}

func TestEveryAlertSaysWhatItMeansAndLinksToItsSection(t *testing.T) {
	const page = "docs/how-to/monitor.md#"
	text := testfile.Text(t, "../../../docs/how-to/monitor.md")
	for _, file := range rules {
		for _, group := range readRules(t, file).Groups {
			for _, r := range group.Rules {
				if want := page + strings.ToLower(r.Alert); r.Annotations["runbook"] != want || r.Annotations["runbook_url"] != "" {
					t.Errorf("%s: want runbook %s and no address, got %q", r.Alert, want, r.Annotations)
				}
				if !strings.Contains(text, "\n### "+r.Alert+"\n") {
					t.Errorf("%s: docs/how-to/monitor.md has no section for it", r.Alert)
				}
				if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Annotations["action"] == "" || !slices.Contains(severities, r.Labels["severity"]) {
					t.Errorf("%s: summary %q, description %q, severity %q", r.Alert, r.Annotations["summary"], r.Annotations["description"], r.Labels["severity"])
				}
			}
		}
	}
}

var grouping = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)

// One ruler may have the series of several clusters, whose namespaces have the same names. Without the label, their series would be one.
func TestEveryAlertKeepsTheClusterAndTheNamespace(t *testing.T) {
	for _, file := range rules {
		for _, group := range readRules(t, file).Groups {
			for _, r := range group.Rules {
				for _, labels := range grouping.FindAllStringSubmatch(r.Expr, -1) {
					if !strings.HasPrefix(labels[1]+",", "cluster, namespace,") {
						t.Errorf("%s: %s drops the cluster or the namespace", r.Alert, labels[0])
					}
				}
				// Each replica of kube-state-metrics has all its series.
				for _, name := range regexp.MustCompile(`(?:max by \([^)]*\)\s*\()?\bkube_\w+`).FindAllString(r.Expr, -1) {
					if !strings.HasPrefix(name, "max by") {
						t.Errorf("%s: two replicas of kube-state-metrics make %s ambiguous; use max by", r.Alert, name)
					}
				}
			}
		}
	}
}

// Somebody who is on call runs one command first.
func TestEveryAlertBeginsWithACommand(t *testing.T) {
	verbs := map[string]bool{}
	for _, c := range command.Commands().Commands() {
		verbs[c.Name()] = true
	}
	for _, file := range rules {
		for _, group := range readRules(t, file).Groups {
			for _, r := range group.Rules {
				words := strings.Fields(r.Annotations["command"])
				if len(words) < 3 || words[0] != "kubectl" || words[1] != "cinder" || !verbs[words[2]] {
					t.Errorf("%s: want a command of kubectl cinder, got %q", r.Alert, r.Annotations["command"])
				}
			}
		}
	}
}
