package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RPCs measures the RPCs, and the age of pending operations. An operation is pending from its first RPC until one succeeds: sidecars
// repeat their calls until then.
type RPCs struct {
	duration *prometheus.HistogramVec
	running  *prometheus.GaugeVec
	pending  *prometheus.Desc

	mu  sync.Mutex
	ops map[operation]*progress
}

type operation struct{ method, object string }

type progress struct {
	since, last time.Time
	running     int
}

// forgetAfter is the time after the last RPC when an operation no longer counts as pending. The longest pause of the sidecars is five
// minutes.
const forgetAfter = 10 * time.Minute

// NewRPCs registers the metrics.
func NewRPCs(registry prometheus.Registerer) *RPCs {
	m := &RPCs{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cinder_csi_rpc_duration_seconds", Help: "Duration of RPCs, by method and gRPC code.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"method", "code"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cinder_csi_rpcs_running", Help: "RPCs in progress, by method."}, []string{"method"}),
		pending: prometheus.NewDesc("cinder_csi_operation_pending_seconds",
			"Age of the oldest operation on one object that has not succeeded yet, including its failed RPCs and the pauses between them, by method.", []string{"method"}, nil),
		ops: map[operation]*progress{},
	}
	registry.MustRegister(m.duration, m.running, m)
	return m
}

// Began notes the start of an RPC; object is empty for an RPC about the driver itself. The returned function notes the end. It implements
// rpc.Meter.
func (m *RPCs) Began(method, object string) (ended func(code string)) {
	begun, op := time.Now(), operation{method, object}
	m.running.WithLabelValues(method).Inc()
	if object != "" {
		m.mu.Lock()
		if m.ops[op] == nil {
			m.ops[op] = &progress{since: begun}
		}
		m.ops[op].running++
		m.mu.Unlock()
	}
	return func(code string) {
		m.running.WithLabelValues(method).Dec()
		m.duration.WithLabelValues(method, code).Observe(time.Since(begun).Seconds())
		if object != "" {
			m.end(op, code == "OK")
		}
	}
}

func (m *RPCs) end(op operation, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.ops[op]
	if p == nil {
		return
	}
	p.last = time.Now()
	if p.running--; done {
		delete(m.ops, op)
	}
	for op, p := range m.ops {
		if p.running <= 0 && time.Since(p.last) > forgetAfter {
			delete(m.ops, op)
		}
	}
}

// Describe implements prometheus.Collector.
func (m *RPCs) Describe(descs chan<- *prometheus.Desc) { descs <- m.pending }

// Collect implements prometheus.Collector.
func (m *RPCs) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	oldest := map[string]time.Duration{}
	for op, p := range m.ops {
		if p.running > 0 || time.Since(p.last) <= forgetAfter {
			oldest[op.method] = max(oldest[op.method], time.Since(p.since))
		}
	}
	m.mu.Unlock()
	for method, age := range oldest {
		metrics <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, age.Seconds(), method)
	}
}
