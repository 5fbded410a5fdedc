package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Reload counts what became of changed configuration files.
type Reload struct {
	total *prometheus.CounterVec
	last  prometheus.Gauge
	odd   prometheus.Gauge
	open  prometheus.Gauge
}

// NewReload registers the metrics. The reading at the start counts as the first success.
func NewReload(registry prometheus.Registerer) *Reload {
	m := &Reload{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_config_reloads_total",
			Help: "Changes of configuration files by result; after a failure the old configuration is in use, and it is tried again every minute.",
		}, []string{"result"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cinder_csi_config_last_reload_success_timestamp_seconds", Help: "When the configuration in use was taken, in Unix time.",
		}),
		odd: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cinder_csi_config_complaints", Help: "Keys, sections and values of cloud.conf that are not used because nobody knows them.",
		}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cinder_csi_config_insecure_settings", Help: "Settings that leave a connection to a cloud open to an attacker on the network: certificates that are not verified, http URLs.",
		}),
	}
	registry.MustRegister(m.total, m.last, m.odd, m.open)
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

// Complaints says how many keys, sections and values of cloud.conf nobody knows.
func (m *Reload) Complaints(n int) { m.odd.Set(float64(n)) }

// Insecure says how many settings leave a connection to a cloud open.
func (m *Reload) Insecure(n int) { m.open.Set(float64(n)) }
