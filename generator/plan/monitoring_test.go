package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestLabelsOfMonitorsAreThoseOfKubernetes(t *testing.T) {
	got := decide(t, cloudOf("fast"), "spec: {monitoring: {kind: PodMonitor, labels: {release: prom, example.org/team: a}}}", v1alpha1.Vanilla).MonitoringLabels
	if diff := cmp.Diff(map[string]string{"release": "prom", "example.org/team": "a"}, got.Value); diff != "" || got.Source != FromConfig {
		t.Errorf("%s: (-want +got):\n%s", got.Source, diff)
	}
	for monitoring, want := range map[string]string{
		"{kind: PodMonitor, labels: {release: a b}}":                       `spec.monitoring.labels.release: "a b": a valid label`,
		"{kind: PodMonitor, labels: {-a: b}}":                              `spec.monitoring.labels: "-a": name part must consist`,
		"{kind: PodMonitor, labels: {app.kubernetes.io/component: other}}": "spec.monitoring.labels: the bundle sets app.kubernetes.io/component itself",
		"{kind: PodMonitor, labels: {helm.sh/chart: other}}":               "spec.monitoring.labels: the bundle sets helm.sh/chart itself",
		"{labels: {release: prom}}":                                        "spec.monitoring.labels: Prometheus does not read the metrics; set spec.monitoring.kind",
	} {
		if got := refusal(t, cloudOf("fast"), "spec: {monitoring: "+monitoring+"}", v1alpha1.Vanilla); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", monitoring, want, got)
		}
	}
}
