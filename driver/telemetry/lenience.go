package telemetry

import "github.com/prometheus/client_golang/prometheus"

// lenientKinds are the kinds of inputs that package controller reports.
var lenientKinds = []string{"unknown parameter", "shared file system", "unread annotations"}

// NewLenience registers the metric of the inputs that the driver accepts without --strict, and returns what counts one of a kind.
func NewLenience(registry prometheus.Registerer) func(kind string) {
	passed := lenientInputs.counter(registry)
	for _, kind := range lenientKinds {
		passed.WithLabelValues(kind)
	}
	return func(kind string) { passed.WithLabelValues(kind).Inc() }
}
