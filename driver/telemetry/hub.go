package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hubs measures those who wait for what happens in the clouds, and what that costs.
type Hubs struct {
	waiters, oldest *prometheus.GaugeVec
	calls           *prometheus.CounterVec
}

// NewHubs registers the metrics.
func NewHubs(registry prometheus.Registerer) *Hubs {
	of := []string{"cloud", "kind"}
	m := &Hubs{
		waiters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_hub_waiters", Help: "Requests that wait for an object to change; kind is volume, snapshot, backup or server.",
		}, of),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_hub_oldest_wait_start_timestamp_seconds", Help: "Since when the longest of them waits, in Unix time; 0 when nobody does.",
		}, of),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_hub_calls_total", Help: "How often the cloud was asked for them: single (one object), list (all), changes (what changed), deleting (what is being deleted).",
		}, []string{"cloud", "kind", "how"}),
	}
	registry.MustRegister(m.waiters, m.oldest, m.calls)
	return m
}

// Of measures the hub of one kind of object in one cloud; it has the shape of the hub's Meter.
func (m *Hubs) Of(cloud, kind string) *Hub {
	return &Hub{
		waiters: m.waiters.WithLabelValues(cloud, kind), oldest: m.oldest.WithLabelValues(cloud, kind),
		calls: m.calls.MustCurryWith(prometheus.Labels{"cloud": cloud, "kind": kind}),
	}
}

// Hub measures one hub.
type Hub struct {
	waiters, oldest prometheus.Gauge
	calls           *prometheus.CounterVec
}

// Waiting says how many wait, and since when the one that waits longest; zero when nobody does.
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
