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
	errors   *prometheus.CounterVec
	running  *prometheus.GaugeVec
	pending  *prometheus.Desc
	list     *operation.List
}

// NewRPCs registers the metrics; list has the pending operations.
func NewRPCs(registry prometheus.Registerer, list *operation.List) *RPCs {
	m := &RPCs{
		duration: rpcDuration.histogram(registry, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300),
		errors:   rpcErrors.counter(registry),
		running:  rpcsRunning.gauge(registry), pending: operationPending.desc(), list: list,
	}
	registry.MustRegister(m)
	return m
}

// Began notes the start of an RPC. The returned function notes the end, and the cause of an error.
func (m *RPCs) Began(method string) (ended func(code, cause string)) {
	begun := time.Now()
	m.running.WithLabelValues(method).Inc()
	return func(code, cause string) {
		m.running.WithLabelValues(method).Dec()
		m.duration.WithLabelValues(method, code).Observe(time.Since(begun).Seconds())
		if cause != "" {
			m.errors.WithLabelValues(cause).Inc()
		}
	}
}

// Describe implements prometheus.Collector.
func (m *RPCs) Describe(descs chan<- *prometheus.Desc) { descs <- m.pending }

// Collect implements prometheus.Collector.
func (m *RPCs) Collect(metrics chan<- prometheus.Metric) {
	now, oldest := time.Now(), map[string]time.Duration{}
	for _, o := range m.list.Pending() {
		oldest[o.Method] = max(oldest[o.Method], now.Sub(o.Since))
	}
	for method, age := range oldest {
		metrics <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, age.Seconds(), method)
	}
}
