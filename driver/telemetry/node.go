package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Node holds the metrics of a node.
type Node struct {
	limit *prometheus.GaugeVec
	zone  prometheus.Gauge
}

// NewNode registers the metrics.
func NewNode(registry prometheus.Registerer) *Node {
	m := &Node{
		limit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_node_volume_limit",
			Help: "How many volumes the node can have (term limit), and its parts: attached + arriving + free - reserve, without foreign volumes. A configured limit, and the default, have no parts.",
		}, []string{"term"}),
		zone: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cinder_csi_node_zone_changed", Help: "1 if the zone of the server differs from the zone in which the node was registered. The log says what to do.",
		}),
	}
	registry.MustRegister(m.limit, m.zone)
	return m
}

// VolumeLimit sets the parts of the attach limit. Parts that are absent are unknown.
func (m *Node) VolumeLimit(terms map[string]int64) {
	m.limit.Reset()
	for term, value := range terms {
		m.limit.WithLabelValues(term).Set(float64(value))
	}
}

// ZoneChanged sets whether the zone of the server differs from the zone in which the node was registered.
func (m *Node) ZoneChanged(changed bool) {
	m.zone.Set(0)
	if changed {
		m.zone.Set(1)
	}
}
