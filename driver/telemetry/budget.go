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
	return &Budgets{
		limit: budgetLimit.gauge(registry), waited: budgetWait.histogram(registry), complaints: budgetThrottled.counter(registry),
	}
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
