package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Node holds the metrics of a node.
type Node struct {
	limit   prometheus.Gauge
	parts   *prometheus.GaugeVec
	zone    prometheus.Gauge
	volumes *prometheus.Desc
	count   atomic.Pointer[func() int]

	registered prometheus.Gauge
	unhealthy  *prometheus.GaugeVec
	mu         sync.Mutex
	ids        []string // of the volumes in unhealthy
}

// totalLimit is the key of the limit itself among the parts that the node reports.
const totalLimit = "limit"

// NewNode registers the metrics.
func NewNode(registry prometheus.Registerer) *Node {
	m := &Node{
		limit: nodeLimit.gauge(registry).WithLabelValues(), parts: nodeLimitPart.gauge(registry), zone: nodeZoneChanged.gauge(registry).WithLabelValues(),
		volumes: nodeVolumes.desc(), registered: nodeRegistered.gauge(registry).WithLabelValues(), unhealthy: nodeUnhealthy.gauge(registry),
	}
	registry.MustRegister(m)
	return m
}

// CountVolumes sets the function that counts the volumes of the node. Each scrape calls it: kubelet asks for the limit seldom, and volumes
// come and go in between.
func (m *Node) CountVolumes(count func() int) { m.count.Store(&count) }

// Describe implements prometheus.Collector.
func (m *Node) Describe(descs chan<- *prometheus.Desc) { descs <- m.volumes }

// Collect implements prometheus.Collector.
func (m *Node) Collect(metrics chan<- prometheus.Metric) {
	if count := m.count.Load(); count != nil {
		metrics <- prometheus.MustNewConstMetric(m.volumes, prometheus.GaugeValue, float64((*count)()))
	}
}

// VolumeLimit sets the attach limit and its parts. Parts that are absent are unknown.
func (m *Node) VolumeLimit(terms map[string]int64) {
	m.parts.Reset()
	for term, value := range terms {
		if term == totalLimit {
			m.limit.Set(float64(value))
			continue
		}
		m.parts.WithLabelValues(term).Set(float64(value))
	}
}

// ZoneChanged sets whether the zone of the server differs from the zone in which the node was registered.
func (m *Node) ZoneChanged(changed bool) {
	m.zone.Set(0)
	if changed {
		m.zone.Set(1)
	}
}

// Registered sets whether kubelet has called NodeGetInfo since the pod started.
func (m *Node) Registered(registered bool) {
	m.registered.Set(0)
	if registered {
		m.registered.Set(1)
	}
}

// mostUnhealthy is how many volumes have series of their own: more than a node can have. A finding that comes after the unstage of its volume leaves
// one behind.
const mostUnhealthy = 512

// VolumeHealth sets what is wrong with a volume. A volume without reasons has no series. Of too many volumes the one that was found first loses its.
func (m *Node) VolumeHealth(id string, reasons []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.ids, id); i >= 0 {
		m.forget(i)
	}
	if len(reasons) == 0 {
		return
	}
	if len(m.ids) == mostUnhealthy {
		m.forget(0)
	}
	m.ids = append(m.ids, id)
	for _, reason := range reasons {
		m.unhealthy.WithLabelValues(id, reason).Set(1)
	}
}

func (m *Node) forget(i int) {
	m.unhealthy.DeletePartialMatch(prometheus.Labels{"volume": m.ids[i]})
	m.ids = slices.Delete(m.ids, i, i+1)
}
