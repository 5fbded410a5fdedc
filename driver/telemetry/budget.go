package telemetry

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Budgets measures how requests are held back.
type Budgets struct {
	limit      *prometheus.GaugeVec
	waited     *prometheus.HistogramVec
	complaints *prometheus.CounterVec
}

// NewBudgets registers the metrics.
func NewBudgets(registry prometheus.Registerer) *Budgets {
	m := &Budgets{
		limit: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_openstack_budget_per_second", Help: "Requests a second that may be sent on average; kind is read or write; lower than configured after the cloud complained.",
		}, []string{"cloud", "kind"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cinder_csi_openstack_throttle_wait_seconds", Help: "How long requests were held back, of those that were.",
		}, []string{"cloud", "kind"}),
		complaints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_openstack_throttled_total", Help: "Answers by which the cloud asked for fewer requests, by HTTP status (429, 498, 503).",
		}, []string{"cloud", "kind", "code"}),
	}
	registry.MustRegister(m.limit, m.waited, m.complaints)
	return m
}

// Of measures the budget of one cloud; it has the shape of the budget's meter.
func (m *Budgets) Of(cloud string) *Budget { return &Budget{cloud, m} }

// Budget measures one budget.
type Budget struct {
	cloud string
	m     *Budgets
}

// Limited says how many requests a second may be sent.
func (b *Budget) Limited(kind string, perSecond float64) {
	b.m.limit.WithLabelValues(b.cloud, kind).Set(perSecond)
}

// Waited counts a request that was held back.
func (b *Budget) Waited(kind string, d time.Duration) {
	b.m.waited.WithLabelValues(b.cloud, kind).Observe(d.Seconds())
}

// Complained counts an answer that asks for fewer requests.
func (b *Budget) Complained(kind string, status int) {
	b.m.complaints.WithLabelValues(b.cloud, kind, strconv.Itoa(status)).Inc()
}
