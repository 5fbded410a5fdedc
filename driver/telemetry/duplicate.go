package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Duplicates counts the objects that share the name of another, and that the driver does not delete.
type Duplicates struct{ seen *prometheus.CounterVec }

// NewDuplicates registers the metric.
func NewDuplicates(registry prometheus.Registerer) *Duplicates {
	return &Duplicates{duplicates.counter(registry)}
}

// Of returns the function that counts duplicates of one cloud, by kind.
func (d *Duplicates) Of(cloud string) func(kind string) {
	for _, kind := range []string{"volume", "snapshot", "backup"} { // so that the first one is a growth, and not a new series
		d.seen.WithLabelValues(cloud, kind)
	}
	return func(kind string) { d.seen.WithLabelValues(cloud, kind).Inc() }
}
