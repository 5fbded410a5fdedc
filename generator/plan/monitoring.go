package plan

import "github.com/cinder-csi/cinder-csi/generator/v1alpha1"

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

func (d *decider) needMetrics(key string, asked bool) {
	if asked {
		d.problem("%s: Prometheus does not read the metrics; set spec.monitoring.kind to %s or %s", key, v1alpha1.PodMonitor, v1alpha1.ServiceMonitor)
	}
}
