package telemetry

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// page is what monitoring reads.
func page(registry *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

func wantOn(t *testing.T, registry *prometheus.Registry, lines ...string) {
	t.Helper()
	got := page(registry)
	for _, line := range lines {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
}

func TestTheHubIsMeasuredPerCloudAndKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		volumes := NewHubs(registry).Of("east", "volume")
		wantOn(t, registry, `cinder_csi_hub_calls_total{cloud="east",how="changes",kind="volume"} 0`, `cinder_csi_hub_oldest_wait_seconds{cloud="east",kind="volume"} 0`)
		volumes.Waiting(3, time.Now())
		time.Sleep(1500 * time.Millisecond)
		volumes.Called("changes")
		volumes.Called("changes")
		wantOn(t, registry, `cinder_csi_hub_waiters{cloud="east",kind="volume"} 3`, `cinder_csi_hub_calls_total{cloud="east",how="changes",kind="volume"} 2`,
			`cinder_csi_hub_oldest_wait_seconds{cloud="east",kind="volume"} 1.5`)
		volumes.Waiting(0, time.Time{})
		time.Sleep(time.Hour)
		wantOn(t, registry, `cinder_csi_hub_waiters{cloud="east",kind="volume"} 0`, `cinder_csi_hub_oldest_wait_seconds{cloud="east",kind="volume"} 0`)
	})
}

func TestTheBudgetIsMeasured(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	budget := NewBudgets(registry).Of("")
	budget.Limited("read", 50)
	budget.Limited("write", math.Inf(1))
	budget.Complained("read", 429)
	budget.Waited("read", time.Second)
	wantOn(t, registry, `cinder_csi_openstack_budget_per_second{cloud="",kind="read"} 50`, `cinder_csi_openstack_budget_per_second{cloud="",kind="write"} +Inf`,
		`cinder_csi_openstack_throttled_total{cloud="",code="429",kind="read"} 1`, `cinder_csi_openstack_throttle_wait_seconds_sum{cloud="",kind="read"} 1`)
}

func TestAnOperationIsPendingFromItsFirstTryUntilItSucceedsOrIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		var list operation.List
		m := NewRPCs(registry, &list)
		begin := func(object string) (end func(code string)) {
			ended, done := m.Began("ControllerPublishVolume"), list.Begin(operation.Key{Method: "ControllerPublishVolume", Object: object}, &volume.Progress{})
			return func(code string) {
				ended(code, "")
				done(code, strings.TrimPrefix(code, "OK"), "")
			}
		}
		pending := func(want string) {
			t.Helper()
			wantOn(t, registry, `cinder_csi_operation_pending_seconds{method="ControllerPublishVolume"} `+want)
		}
		m.Began("Probe")("OK", "")
		ended := begin("v1")
		time.Sleep(30 * time.Second)
		pending("30")
		ended("DeadlineExceeded")
		time.Sleep(time.Minute)
		other := begin("v2")
		pending("90")
		begin("v1")("OK")
		time.Sleep(time.Second)
		pending("1")
		wantOn(t, registry, `cinder_csi_rpcs_running{method="ControllerPublishVolume"} 1`)
		other("Internal")
		time.Sleep(operation.ForgetAfter)
		pending("601")
		time.Sleep(time.Second)
		if got := page(registry); strings.Contains(got, "operation_pending_seconds") {
			t.Errorf("an operation that nobody tries any more is pending:\n%s", got)
		}
		wantOn(t, registry, `cinder_csi_rpc_duration_seconds_count{code="OK",method="ControllerPublishVolume"} 1`,
			`cinder_csi_rpc_duration_seconds_count{code="DeadlineExceeded",method="ControllerPublishVolume"} 1`, `cinder_csi_rpcs_running{method="ControllerPublishVolume"} 0`)
	})
}
