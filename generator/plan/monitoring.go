package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// monitoring is which object of the Prometheus operator names the metrics, and what reads them.
func (d *decider) monitoring() (kind Decision[string], alerts, dashboards Decision[bool]) {
	s := d.spec.Monitoring
	kind = settingOf(s.Kind, d.given.Monitoring.Kind != "" && s.Kind != v1alpha1.None, "spec.monitoring.kind", "spec.monitoring.kind is not set: nodes serve no metrics, and no object names the controller's")
	alerts = configuredAs(s.Alerts, s.Alerts, "spec.monitoring.alerts")
	dashboards = configuredAs(s.Dashboards, s.Dashboards, "spec.monitoring.dashboards")
	if s.Kind == v1alpha1.None {
		d.needMetrics("spec.monitoring.alerts", s.Alerts)
		d.needMetrics("spec.monitoring.dashboards", s.Dashboards)
	}
	return kind, alerts, dashboards
}

// runbookBase is where the alerts find their pages. No default: an address that nobody owns could become that of a stranger.
func (d *decider) runbookBase() Decision[string] {
	const key = "spec.monitoring.runbookBase"
	base := strings.TrimRight(d.spec.Monitoring.RunbookBase, "/")
	if base == "" {
		return Decision[string]{Source: Default, Reason: key + " is not set: alerts name their page, and no address"}
	}
	if !runbookAddress.MatchString(base) {
		d.problem("%s: %q is no address of a directory: want https://HOST/PATH without user, query and fragment", key, base)
	}
	return Decision[string]{Value: base, Source: FromConfig, Reason: key + " is set"}
}

// runbookAddress is the pattern of the chart's schema too.
var runbookAddress = regexp.MustCompile(`^https?://[A-Za-z0-9._~:/%+-]*[A-Za-z0-9_~%+-]$`)

// ownLabels begin the keys of labels that both forms of a bundle set.
var ownLabels = []string{"app.kubernetes.io/", "helm.sh/chart"}

// monitoringLabels are for a Prometheus whose selectors want labels, as that of kube-prometheus-stack does.
func (d *decider) monitoringLabels() Decision[map[string]string] {
	const key = "spec.monitoring.labels"
	labels := d.spec.Monitoring.Labels
	d.checkLabelSet(key, labels)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if slices.ContainsFunc(ownLabels, func(own string) bool { return strings.HasPrefix(name, own) }) {
			d.problem("%s: the bundle sets %s itself", key, name)
		}
	}
	if d.spec.Monitoring.Kind == v1alpha1.None {
		d.needMetrics(key, len(labels) > 0)
	}
	return configuredAs(labels, len(labels) > 0, key)
}

func (d *decider) needMetrics(key string, asked bool) {
	if asked {
		d.problem("%s: Prometheus does not read the metrics; set spec.monitoring.kind to %s or %s", key, v1alpha1.PodMonitor, v1alpha1.ServiceMonitor)
	}
}
