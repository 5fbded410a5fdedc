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

// A quota is either in bytes or in objects, so the two have names of their own.
var (
	quotaLabels     = []string{"resource", "type"}
	quotaLimitBytes = prometheus.NewDesc("cinder_csi_quota_limit_bytes", "The project's quotas in Cinder for sizes: of volumes and snapshots together (volumes), of backups, and of a single volume (volume). +Inf means no limit. An empty type means all types.", quotaLabels, nil)
	quotaUsedBytes  = prometheus.NewDesc("cinder_csi_quota_used_bytes", "Used and reserved part of the quotas for sizes.", quotaLabels, nil)
	quotaLimit      = prometheus.NewDesc("cinder_csi_quota_limit_objects", "The project's quotas in Cinder for numbers of objects, such as volumes, snapshots and backups. +Inf means no limit. An empty type means all types.", quotaLabels, nil)
	quotaUsed       = prometheus.NewDesc("cinder_csi_quota_used_objects", "Used and reserved part of the quotas for numbers of objects.", quotaLabels, nil)
	quotaRead       = prometheus.NewDesc("cinder_csi_quota_read_timestamp_seconds", "When the driver read the quotas, as a Unix time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (q *Quota) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- quotaLimitBytes
	descriptions <- quotaUsedBytes
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
		limit, used := float64(quota.Limit), float64(quota.InUse+quota.Reserved)
		if quota.Limit < 0 {
			limit = math.Inf(1)
		}
		resource, volumeType := resourceOf(name)
		limits, uses := quotaLimit, quotaUsed
		if sized, ok := sizes[resource]; ok {
			resource, limits, uses, limit, used = sized, quotaLimitBytes, quotaUsedBytes, limit*gib, used*gib
		}
		metrics <- prometheus.MustNewConstMetric(limits, prometheus.GaugeValue, limit, resource, volumeType)
		metrics <- prometheus.MustNewConstMetric(uses, prometheus.GaugeValue, used, resource, volumeType)
	}
	metrics <- prometheus.MustNewConstMetric(quotaRead, prometheus.GaugeValue, float64(last.at.Unix()))
}

const gib = 1 << 30

// sizes are Cinder's quotas in GiB, and whose size each limits.
var sizes = map[string]string{"gigabytes": "volumes", "backup_gigabytes": "backups", "per_volume_gigabytes": "volume"}

// resourceOf splits the name of a quota: gigabytes_fast is the quota for gigabytes of the volume type fast.
func resourceOf(name string) (resource, volumeType string) {
	for _, resource := range []string{"volumes", "gigabytes", "snapshots"} {
		if volumeType, ok := strings.CutPrefix(name, resource+"_"); ok {
			return resource, volumeType
		}
	}
	return name, ""
}
