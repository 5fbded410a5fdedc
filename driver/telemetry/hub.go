package telemetry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hubs measures the status hubs: their waiters and their requests.
type Hubs struct {
	waiters *prometheus.GaugeVec
	calls   *prometheus.CounterVec
	oldest  *prometheus.Desc

	mu   sync.Mutex
	hubs []*Hub
}

var hows = []string{"single", "list", "changes"}

// NewHubs registers the metrics.
func NewHubs(registry prometheus.Registerer) *Hubs {
	m := &Hubs{waiters: hubWaiters.gauge(registry), oldest: hubOldestWait.desc(), calls: hubCalls.counter(registry)}
	registry.MustRegister(m)
	return m
}

// Of returns the meter of one hub: of one kind of object in one cloud. It implements status.Meter.
func (m *Hubs) Of(cloud, kind string) *Hub {
	h := &Hub{cloud: cloud, kind: kind, waiters: m.waiters.WithLabelValues(cloud, kind), calls: m.calls.MustCurryWith(prometheus.Labels{"cloud": cloud, "kind": kind})}
	for _, how := range hows {
		h.calls.WithLabelValues(how)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hubs = append(m.hubs, h)
	return h
}

// Describe implements prometheus.Collector.
func (m *Hubs) Describe(descs chan<- *prometheus.Desc) { descs <- m.oldest }

// Collect implements prometheus.Collector.
func (m *Hubs) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.hubs {
		metrics <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, h.oldestWait().Seconds(), h.cloud, h.kind)
	}
}

// Hub is the meter of one hub.
type Hub struct {
	cloud, kind string
	waiters     prometheus.Gauge
	calls       *prometheus.CounterVec

	oldest atomic.Pointer[time.Time]
}

// Waiting sets the number of waiters, and when the oldest of them began; zero without waiters.
func (h *Hub) Waiting(waiters int, oldest time.Time) {
	h.waiters.Set(float64(waiters))
	h.oldest.Store(&oldest)
}

func (h *Hub) oldestWait() time.Duration {
	if oldest := h.oldest.Load(); oldest != nil && !oldest.IsZero() {
		return time.Since(*oldest)
	}
	return 0
}

// Called counts one request.
func (h *Hub) Called(how string) { h.calls.WithLabelValues(how).Inc() }
