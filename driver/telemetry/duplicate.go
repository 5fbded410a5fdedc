package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Duplicates counts what the driver found beside another object of the same name and did not remove.
type Duplicates struct{ seen *prometheus.CounterVec }

// NewDuplicates registers the metric.
func NewDuplicates(registry prometheus.Registerer) *Duplicates {
	d := &Duplicates{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cinder_csi_duplicates_total",
		Help: "How often a create found, beside the object it returned, another of the same name that it must not remove; kind is volume, snapshot or backup; the log has their ids.",
	}, []string{"cloud", "kind"})}
	registry.MustRegister(d.seen)
	return d
}

// Of gives what counts those of one cloud, by kind.
func (d *Duplicates) Of(cloud string) func(kind string) {
	return func(kind string) { d.seen.WithLabelValues(cloud, kind).Inc() }
}
