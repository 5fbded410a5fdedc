package telemetry

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Budgets measures the request limits of the clouds.
type Budgets struct {
	limit      *prometheus.GaugeVec
	waited     *prometheus.HistogramVec
	complaints *prometheus.CounterVec
}

// NewBudgets registers the metrics.
func NewBudgets(registry prometheus.Registerer) *Budgets {
	m := &Budgets{
		limit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_openstack_budget_per_second", Help: "Requests a second that the driver sends on average; kind is read or write. It is lower than configured after the cloud asked for fewer requests.",
		}, []string{"cloud", "kind"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cinder_csi_openstack_throttle_wait_seconds", Help: "How long requests waited for the limit; requests that did not wait are not counted.",
		}, []string{"cloud", "kind"}),
		complaints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_openstack_throttled_total", Help: "Answers that ask for fewer requests, by HTTP status (429, 498, 503).",
		}, []string{"cloud", "kind", "code"}),
	}
	registry.MustRegister(m.limit, m.waited, m.complaints)
	return m
}

// Of returns the meter of the budget of one cloud. It implements transport.BudgetMeter.
func (m *Budgets) Of(cloud string) *Budget {
	for _, kind := range []string{"read", "write"} {
		m.waited.WithLabelValues(cloud, kind)
		for _, status := range []string{"429", "498", "503"} {
			m.complaints.WithLabelValues(cloud, kind, status)
		}
	}
	return &Budget{cloud, m}
}

// Budget is the meter of one budget.
type Budget struct {
	cloud string
	m     *Budgets
}

// Limited sets the present limit.
func (b *Budget) Limited(kind string, perSecond float64) {
	b.m.limit.WithLabelValues(b.cloud, kind).Set(perSecond)
}

// Waited counts a request that waited.
func (b *Budget) Waited(kind string, d time.Duration) {
	b.m.waited.WithLabelValues(b.cloud, kind).Observe(d.Seconds())
}

// Complained counts an answer that asks for fewer requests.
func (b *Budget) Complained(kind string, status int) {
	b.m.complaints.WithLabelValues(b.cloud, kind, strconv.Itoa(status)).Inc()
}
