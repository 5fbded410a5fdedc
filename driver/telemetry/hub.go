package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hubs measures the status hubs: their waiters and their requests.
type Hubs struct {
	waiters, oldest *prometheus.GaugeVec
	calls           *prometheus.CounterVec
}

// NewHubs registers the metrics.
func NewHubs(registry prometheus.Registerer) *Hubs {
	of := []string{"cloud", "kind"}
	m := &Hubs{
		waiters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_hub_waiters", Help: "RPCs that wait for an object to change; kind is volume, snapshot, backup or server.",
		}, of),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_hub_oldest_wait_start_timestamp_seconds", Help: "When the oldest waiter began to wait, as a Unix time; 0 without waiters.",
		}, of),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_hub_calls_total", Help: "Requests to the cloud for the waiters: single (one object), list (all objects), changes (changed objects), deleting (objects that are being deleted).",
		}, []string{"cloud", "kind", "how"}),
	}
	registry.MustRegister(m.waiters, m.oldest, m.calls)
	return m
}

// Of returns the meter of one hub: of one kind of object in one cloud. It implements status.Meter.
func (m *Hubs) Of(cloud, kind string) *Hub {
	return &Hub{
		waiters: m.waiters.WithLabelValues(cloud, kind), oldest: m.oldest.WithLabelValues(cloud, kind),
		calls: m.calls.MustCurryWith(prometheus.Labels{"cloud": cloud, "kind": kind}),
	}
}

// Hub is the meter of one hub.
type Hub struct {
	waiters, oldest prometheus.Gauge
	calls           *prometheus.CounterVec
}

// Waiting sets the number of waiters, and when the oldest of them began; zero without waiters.
func (h *Hub) Waiting(waiters int, oldest time.Time) {
	h.waiters.Set(float64(waiters))
	if oldest.IsZero() {
		h.oldest.Set(0)
		return
	}
	h.oldest.Set(float64(oldest.UnixMilli()) / 1000)
}

// Called counts one request.
func (h *Hub) Called(how string) { h.calls.WithLabelValues(how).Inc() }
