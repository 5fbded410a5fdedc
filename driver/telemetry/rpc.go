package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinder-csi/cinder-csi/driver/operation"
)

// RPCs measures the RPCs, and the age of pending operations. An operation is pending from its first RPC until one succeeds: sidecars
// repeat their calls until then.
type RPCs struct {
	duration *prometheus.HistogramVec
	running  *prometheus.GaugeVec
	pending  *prometheus.Desc
	list     *operation.List
}

// NewRPCs registers the metrics; list has the pending operations.
func NewRPCs(registry prometheus.Registerer, list *operation.List) *RPCs {
	m := &RPCs{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cinder_csi_rpc_duration_seconds", Help: "Duration of RPCs, by method and gRPC code.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"method", "code"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cinder_csi_rpcs_running", Help: "RPCs in progress, by method."}, []string{"method"}),
		pending: prometheus.NewDesc("cinder_csi_operation_pending_seconds",
			"Age of the oldest operation on one object that has not succeeded yet, including its failed RPCs and the pauses between them, by method. "+
				"/debug/operations names the objects.", []string{"method"}, nil),
		list: list,
	}
	registry.MustRegister(m.duration, m.running, m)
	return m
}

// Began notes the start of an RPC. The returned function notes the end. It implements rpc.Meter.
func (m *RPCs) Began(method string) (ended func(code string)) {
	begun := time.Now()
	m.running.WithLabelValues(method).Inc()
	return func(code string) {
		m.running.WithLabelValues(method).Dec()
		m.duration.WithLabelValues(method, code).Observe(time.Since(begun).Seconds())
	}
}

// Describe implements prometheus.Collector.
func (m *RPCs) Describe(descs chan<- *prometheus.Desc) { descs <- m.pending }

// Collect implements prometheus.Collector.
func (m *RPCs) Collect(metrics chan<- prometheus.Metric) {
	now, oldest := time.Now(), map[string]time.Duration{}
	for _, o := range m.list.Pending() {
		oldest[o.Method] = max(oldest[o.Method], o.Age(now))
	}
	for method, age := range oldest {
		metrics <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, age.Seconds(), method)
	}
}
