package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// NewBuild registers a metric that tells which version of the driver runs. Its value is always 1.
func NewBuild(registry prometheus.Registerer, version string) {
	buildInfo.gauge(registry).WithLabelValues(version, runtime.Version()).Set(1)
}
