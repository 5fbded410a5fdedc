package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestQuotasAreShownAsTheyWereLastRead(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	q := NewQuota(registry)
	page := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.PanicOnError}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	if page() != "" {
		t.Errorf("nothing was read, but %s", page())
	}
	q.Saw(map[string]volume.Quota{"gone": {}})
	q.Saw(map[string]volume.Quota{
		"gigabytes": {Limit: 1000, InUse: 5, Reserved: 2}, "gigabytes_my_type": {Limit: -1, InUse: 3}, "backup_gigabytes": {Limit: 7}, "per_volume_gigabytes": {Limit: -1}, "volumes_fast": {Limit: 8, InUse: 2},
		"volumes": {Limit: 9}, "volumes_": {Limit: 9}, "gigabytes_": {Limit: 9}, // a hostile cloud: no series may be there twice
	})
	for _, want := range []string{
		`cinder_csi_quota_limit_bytes{resource="volumes",type=""} 1.073741824e+12`, `cinder_csi_quota_used_bytes{resource="volumes",type=""} 7.516192768e+09`,
		`cinder_csi_quota_limit_bytes{resource="volumes",type="my_type"} +Inf`, `cinder_csi_quota_used_bytes{resource="volumes",type="my_type"} 3.221225472e+09`,
		`cinder_csi_quota_limit_bytes{resource="backups",type=""} 7.516192768e+09`, `cinder_csi_quota_limit_bytes{resource="volume",type=""} +Inf`,
		`cinder_csi_quota_limit_objects{resource="volumes",type="fast"} 8`, `cinder_csi_quota_used_objects{resource="volumes",type="fast"} 2`,
	} {
		if !strings.Contains(page(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, page())
		}
	}
	if strings.Contains(page(), "gone") || !strings.Contains(page(), "cinder_csi_quota_read_timestamp_seconds") {
		t.Errorf("got %s", page())
	}
}
