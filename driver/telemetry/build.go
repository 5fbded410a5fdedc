package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// NewBuild registers a metric that tells which version of the driver runs. Its value is always 1.
func NewBuild(registry prometheus.Registerer, version string) {
	m := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cinder_csi_build_info", Help: "The version of the driver and of Go; the value is always 1.",
	}, []string{"version", "go_version"})
	m.WithLabelValues(version, runtime.Version()).Set(1)
	registry.MustRegister(m)
}
