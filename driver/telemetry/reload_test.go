package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func TestReloadsAreCountedByResultFromZero(t *testing.T) { synctest.Test(t, countReloads) }

func countReloads(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewReload(registry)
	page := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	last := func() string {
		return fmt.Sprintf("cinder_csi_config_last_reload_success_timestamp_seconds %v\n", float64(time.Now().Unix()))
	}
	if !strings.Contains(page(), last()) {
		t.Errorf("the first read: want %s in\n%s", last(), page())
	}
	time.Sleep(time.Hour)
	m.Done(nil)
	m.Complaints(3)
	if !strings.Contains(page(), last()) {
		t.Errorf("a reload: want %s in\n%s", last(), page())
	}
	for _, want := range []string{
		`cinder_csi_config_reloads_total{result="success"} 1`, `cinder_csi_config_reloads_total{result="failure"} 0`, `cinder_csi_config_complaints 3`,
	} {
		if !strings.Contains(page(), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, page())
		}
	}
	before := last()
	time.Sleep(time.Hour)
	m.Done(errors.New("broken"))
	if !strings.Contains(page(), `{result="failure"} 1`) || !strings.Contains(page(), before) {
		t.Errorf("a failure: %s", page())
	}
}
