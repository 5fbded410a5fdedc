package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// NewBuild registers a metric that tells which version of the driver runs. Its value is always 1.
func NewBuild(registry prometheus.Registerer, version string) {
	buildInfo.gauge(registry).WithLabelValues(version, runtime.Version()).Set(1)
}

// NewPanics registers the number of panics in the process.
func NewPanics(registry prometheus.Registerer, seen func() uint64) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: panicsSeen.Name, Help: panicsSeen.Help}, func() float64 { return float64(seen()) }))
}
