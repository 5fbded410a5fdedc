package telemetry

import (
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Quota shows the project's quotas, as the driver read them last. It does not read them itself.
type Quota struct{ last atomic.Pointer[quotas] }

type quotas struct {
	all map[string]volume.Quota
	at  time.Time
}

// NewQuota registers the metrics. They have no values before the first Saw.
func NewQuota(registry prometheus.Registerer) *Quota {
	q := &Quota{}
	registry.MustRegister(q)
	return q
}

// Saw stores the quotas that the driver has read, by Cinder's names.
func (q *Quota) Saw(all map[string]volume.Quota) { q.last.Store(&quotas{all, time.Now()}) }

var (
	limitBytes   = quotaLimitBytes.desc()
	usedBytes    = quotaUsedBytes.desc()
	limitObjects = quotaLimitObjects.desc()
	usedObjects  = quotaUsedObjects.desc()
	lastRead     = quotaRead.desc()
)

// Describe implements prometheus.Collector.
func (q *Quota) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitBytes, usedBytes, limitObjects, usedObjects, lastRead} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (q *Quota) Collect(metrics chan<- prometheus.Metric) {
	last := q.last.Load()
	if last == nil {
		return
	}
	for name, quota := range last.all {
		limit, used := float64(quota.Limit), float64(quota.InUse+quota.Reserved)
		if quota.Limit < 0 {
			limit = math.Inf(1)
		}
		resource, volumeType := resourceOf(name)
		limits, uses := limitObjects, usedObjects
		if sized, ok := sizes[resource]; ok {
			resource, limits, uses, limit, used = sized, limitBytes, usedBytes, limit*gib, used*gib
		}
		metrics <- prometheus.MustNewConstMetric(limits, prometheus.GaugeValue, limit, resource, volumeType)
		metrics <- prometheus.MustNewConstMetric(uses, prometheus.GaugeValue, used, resource, volumeType)
	}
	metrics <- prometheus.MustNewConstMetric(lastRead, prometheus.GaugeValue, float64(last.at.Unix()))
}

const gib = 1 << 30

// sizes are Cinder's quotas in GiB, and whose size each limits.
var sizes = map[string]string{"gigabytes": "volumes", "backup_gigabytes": "backups", "per_volume_gigabytes": "volume"}

// resourceOf splits the name of a quota: gigabytes_fast is the quota for gigabytes of the volume type fast.
func resourceOf(name string) (resource, volumeType string) {
	for _, resource := range []string{"volumes", "gigabytes", "snapshots"} {
		if volumeType, ok := strings.CutPrefix(name, resource+"_"); ok && volumeType != "" { // else two names would be one series
			return resource, volumeType
		}
	}
	return name, ""
}
