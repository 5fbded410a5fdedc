package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Lenience counts the inputs that the driver accepts without --strict.
type Lenience struct{ passed *prometheus.CounterVec }

// lenientKinds are the kinds of inputs that package controller reports.
var lenientKinds = []string{"unknown parameter", "shared file system", "unread annotations"}

// NewLenience registers the metric.
func NewLenience(registry prometheus.Registerer) *Lenience {
	l := &Lenience{lenientInputs.counter(registry)}
	for _, kind := range lenientKinds {
		l.passed.WithLabelValues(kind)
	}
	return l
}

// Count counts one of a kind.
func (l *Lenience) Count(what string) { l.passed.WithLabelValues(what).Inc() }
