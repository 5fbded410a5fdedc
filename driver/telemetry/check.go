package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Checks shows what the regular checks of the clouds found.
type Checks struct{ unavailable, expires *prometheus.GaugeVec }

// NewChecks registers the metrics.
func NewChecks(registry prometheus.Registerer) *Checks {
	return &Checks{unavailable: cloudUnavailable.gauge(registry), expires: credentialExpires.gauge(registry)}
}

// Unavailable sets why a service cannot be used: one of reasons, or empty if it can.
func (c *Checks) Unavailable(cloud, service, reason string, reasons []string) {
	for _, r := range reasons {
		value := 0.0
		if r == reason {
			value = 1
		}
		c.unavailable.WithLabelValues(cloud, service, r).Set(value)
	}
}

// Expires sets when the credential of a cloud expires. The zero time means never, or that it is unknown.
func (c *Checks) Expires(cloud string, at time.Time) {
	if at.IsZero() {
		c.expires.DeleteLabelValues(cloud)
		return
	}
	c.expires.WithLabelValues(cloud).Set(float64(at.Unix()))
}
