package telemetry

import (
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Quota shows the project's quotas as they were last read. It reads none itself.
type Quota struct{ last atomic.Pointer[quotas] }

type quotas struct {
	all map[string]volume.Quota
	at  time.Time
}

// NewQuota registers the metrics, which are there once Saw was called.
func NewQuota(registry prometheus.Registerer) *Quota {
	q := &Quota{}
	registry.MustRegister(q)
	return q
}

// Saw takes the quotas that somebody has read, by Cinder's names.
func (q *Quota) Saw(all map[string]volume.Quota) { q.last.Store(&quotas{all, time.Now()}) }

var (
	quotaLabels = []string{"resource", "type"}
	quotaLimit  = prometheus.NewDesc("cinder_csi_quota_limit", "The project's quotas in Cinder, in whole objects or GiB; +Inf is none. An empty type is all types.", quotaLabels, nil)
	quotaUsed   = prometheus.NewDesc("cinder_csi_quota_used", "How much of the quotas is used or reserved.", quotaLabels, nil)
	quotaRead   = prometheus.NewDesc("cinder_csi_quota_read_timestamp_seconds", "When the quotas were read, in Unix time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (q *Quota) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- quotaLimit
	descriptions <- quotaUsed
	descriptions <- quotaRead
}

// Collect implements prometheus.Collector.
func (q *Quota) Collect(metrics chan<- prometheus.Metric) {
	last := q.last.Load()
	if last == nil {
		return
	}
	for name, quota := range last.all {
		limit := float64(quota.Limit)
		if quota.Limit < 0 {
			limit = math.Inf(1)
		}
		resource, volumeType := resourceOf(name)
		metrics <- prometheus.MustNewConstMetric(quotaLimit, prometheus.GaugeValue, limit, resource, volumeType)
		metrics <- prometheus.MustNewConstMetric(quotaUsed, prometheus.GaugeValue, float64(quota.InUse+quota.Reserved), resource, volumeType)
	}
	metrics <- prometheus.MustNewConstMetric(quotaRead, prometheus.GaugeValue, float64(last.at.Unix()))
}

// resourceOf takes the volume type out of a quota's name: gigabytes_fast is the quota of gigabytes of the type fast.
func resourceOf(name string) (resource, volumeType string) {
	for _, resource := range []string{"volumes", "gigabytes", "snapshots"} {
		if volumeType, ok := strings.CutPrefix(name, resource+"_"); ok {
			return resource, volumeType
		}
	}
	return name, ""
}
