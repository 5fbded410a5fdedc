package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func TestReloadsAreCountedByResultFromZero(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewReload(registry)
	m.Done(nil)
	m.Complaints(3)
	page := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	for _, want := range []string{
		`cinder_csi_config_reloads_total{result="success"} 1`, `cinder_csi_config_reloads_total{result="failure"} 0`, `cinder_csi_config_complaints 3`,
	} {
		if !strings.Contains(page(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, page())
		}
	}
	m.last.Set(1)
	m.Done(errors.New("broken"))
	if !strings.Contains(page(), `{result="failure"} 1`) || !strings.Contains(page(), "timestamp_seconds 1\n") {
		t.Errorf("a failure: %s", page())
	}
}
