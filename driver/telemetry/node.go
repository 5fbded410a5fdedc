package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Node tells what a node says of itself.
type Node struct {
	limit *prometheus.GaugeVec
	zone  prometheus.Gauge
}

// NewNode registers the metrics.
func NewNode(registry prometheus.Registerer) *Node {
	m := &Node{
		limit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_node_volume_limit",
			Help: "How many volumes the node takes (term limit) and what that is made of: attached + arriving + free - reserve; foreign volumes are not counted. A limit that was set, or the default, stands alone.",
		}, []string{"term"}),
		zone: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cinder_csi_node_zone_changed", Help: "1 if the server is in another zone than the node was registered in; the log says what to do.",
		}),
	}
	registry.MustRegister(m.limit, m.zone)
	return m
}

// VolumeLimit takes the terms of the attach limit; terms that are not among them are unknown.
func (m *Node) VolumeLimit(terms map[string]int64) {
	m.limit.Reset()
	for term, value := range terms {
		m.limit.WithLabelValues(term).Set(float64(value))
	}
}

// ZoneChanged says whether the server is in another zone than the node was registered in.
func (m *Node) ZoneChanged(changed bool) {
	m.zone.Set(0)
	if changed {
		m.zone.Set(1)
	}
}
