package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Lenience counts what the driver lets pass that it would refuse with --strict.
type Lenience struct{ passed *prometheus.CounterVec }

// NewLenience registers the metric.
func NewLenience(registry prometheus.Registerer) *Lenience {
	l := &Lenience{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cinder_csi_lenient_total", Help: "What was let pass that --strict refuses.",
	}, []string{"what"})}
	registry.MustRegister(l.passed)
	return l
}

// Count counts one such thing of a kind.
func (l *Lenience) Count(what string) { l.passed.WithLabelValues(what).Inc() }
