package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Lenience counts what the driver accepts without --strict.
type Lenience struct{ passed *prometheus.CounterVec }

// NewLenience registers the metric.
func NewLenience(registry prometheus.Registerer) *Lenience {
	l := &Lenience{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cinder_csi_lenient_total", Help: "Settings and requests that the driver accepted, and that --strict refuses.",
	}, []string{"what"})}
	registry.MustRegister(l.passed)
	return l
}

// Count counts one of a kind.
func (l *Lenience) Count(what string) { l.passed.WithLabelValues(what).Inc() }
