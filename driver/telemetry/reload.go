package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Reload measures the reloads of configuration files.
type Reload struct {
	total    *prometheus.CounterVec
	last     prometheus.Gauge
	unknown  prometheus.Gauge
	insecure prometheus.Gauge
}

// NewReload registers the metrics. The first read, at the start, counts as a success.
func NewReload(registry prometheus.Registerer) *Reload {
	m := &Reload{
		total: configReloads.counter(registry), last: configLastReload.gauge(registry).WithLabelValues(),
		unknown: configComplaints.gauge(registry).WithLabelValues(), insecure: configInsecure.gauge(registry).WithLabelValues(),
	}
	for _, result := range []string{succeeded, failed} {
		m.total.WithLabelValues(result)
	}
	m.last.SetToCurrentTime()
	return m
}

// Values of the label "result".
const succeeded, failed = "success", "failure"

// Done counts one reload.
func (m *Reload) Done(err error) {
	if err != nil {
		m.total.WithLabelValues(failed).Inc()
		return
	}
	m.total.WithLabelValues(succeeded).Inc()
	m.last.SetToCurrentTime()
}

// Complaints sets the number of unknown keys, sections and values of cloud.conf.
func (m *Reload) Complaints(n int) { m.unknown.Set(float64(n)) }

// Insecure sets the number of settings that make a connection to a cloud insecure.
func (m *Reload) Insecure(n int) { m.insecure.Set(float64(n)) }
