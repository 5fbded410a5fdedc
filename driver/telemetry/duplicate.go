package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Duplicates counts the objects that share the name of another, and that the driver does not delete.
type Duplicates struct{ seen *prometheus.CounterVec }

// NewDuplicates registers the metric.
func NewDuplicates(registry prometheus.Registerer) *Duplicates {
	d := &Duplicates{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cinder_csi_duplicates_total",
		Help: "How often a create found a second object with the same name that the driver must not delete; kind is volume, snapshot or backup. The log has the ids.",
	}, []string{"cloud", "kind"})}
	registry.MustRegister(d.seen)
	return d
}

// Of returns the function that counts duplicates of one cloud, by kind.
func (d *Duplicates) Of(cloud string) func(kind string) {
	for _, kind := range []string{"volume", "snapshot", "backup"} { // so that the first one is a growth, and not a new series
		d.seen.WithLabelValues(cloud, kind)
	}
	return func(kind string) { d.seen.WithLabelValues(cloud, kind).Inc() }
}
