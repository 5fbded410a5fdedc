package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRequestsHaveUpstreamsNames(t *testing.T) {
	for request, want := range map[string]string{
		"POST /v3/p/volumes":                             "volume_create",
		"GET /v3/p/volumes/detail?name=x":                "volume_list",
		"GET /v3/p/volumes/1":                            "volume_get",
		"DELETE /v3/p/volumes/1":                         "volume_delete",
		"POST /v3/p/volumes/1/action":                    "volume_expand",
		"POST /v2.1/servers/1/os-volume_attachments":     "volume_attach",
		"DELETE /v2.1/servers/1/os-volume_attachments/2": "volume_detach",
		"GET /v2.1/servers/1/os-volume_attachments":      "server_attachments",
		"GET /v2.1/servers/1":                            "server_get",
		"GET /v3/p/messages?resource_uuid=1":             "message_list",
		"POST /v3/p/snapshots":                           "snapshot_create",
		"GET /v3/p/snapshots/detail?name=x":              "snapshot_list",
		"GET /v3/p/snapshots/1":                          "snapshot_get",
		"DELETE /v3/p/snapshots/1":                       "snapshot_delete",
		"POST /v3/p/backups":                             "backup_create",
		"GET /v3/p/backups/detail?name=x":                "backup_list",
		"GET /v3/p/backups/1":                            "backup_get",
		"DELETE /v3/p/backups/1":                         "backup_delete",
		"GET /v3/p/attachments?volume_id=1":              "attachment_list",
		"GET /v3/p/attachments/1":                        "attachment_get",
		"DELETE /v3/p/attachments/1":                     "attachment_delete",
		"GET /v3":                                        "keystone_check",
		"GET /identity/v3/":                              "keystone_check",
		"POST /v3/auth/tokens":                           "token_create",
		"GET /v3/auth/tokens":                            "token_get",
		"GET /v3/users/1/application_credentials/2":      "credential_get",
		"POST /v3/p/volumes/1/metadata":                  "metadata_add",
		"DELETE /v3/p/volumes/1/metadata/team":           "metadata_remove",
		"GET /v3/p/types?marker=1":                       "type_list",
		"GET /v3/p/types/default":                        "type_default",
		"GET /v3/p/os-quota-sets/p?usage=true":           "quota_get",
		"GET /v3/p/os-availability-zone":                 "zone_list",
		"GET /":                                          "other",
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://cloud"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(r); got != want {
			t.Errorf("%s: want %s, got %s", request, want, got)
		}
	}
}

func TestEveryRequestIsCountedAndFailuresTwice(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics := NewOpenStack(registry).Of("")
	r := httptest.NewRequest(http.MethodPost, "http://cloud/v3/p/volumes", http.NoBody)
	for _, status := range []int{202, 413, 0} {
		metrics.Answered(r, status, time.Second)
	}
	wantOn(t, registry,
		`cinder_csi_openstack_answers_total{code="0",request="volume_create"} 1`,
		`cinder_csi_openstack_answers_total{code="202",request="volume_create"} 1`,
		`cinder_csi_openstack_answers_total{code="413",request="volume_create"} 1`,
		`openstack_api_request_errors_total{request="volume_create"} 2`,
		`openstack_api_requests_total{request="volume_create"} 3`,
		`openstack_api_request_duration_seconds_sum{request="volume_create"} 3`,
	)
}

// A broken or hostile cloud must not make a time series for every number.
func TestAStatusThatHTTPDoesNotDefineIsOneSeries(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics := NewOpenStack(registry).Of("")
	r := httptest.NewRequest(http.MethodGet, "http://cloud/v3/p/volumes/1", http.NoBody)
	for status := range 1000 {
		metrics.Answered(r, status, 0)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if n := len(family.GetMetric()); n > 70 {
			t.Errorf("%s has %d series for one request", family.GetName(), n)
		}
	}
	wantOn(t, registry, `cinder_csi_openstack_answers_total{code="498",request="volume_get"} 1`, `cinder_csi_openstack_answers_total{code="0",request="volume_get"} 1`)
}

// An alert reads this series. An outage after a refusal must not end the alert, and a login that works must.
func TestARefusedLoginIsShownUntilALoginSucceeds(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	all := NewOpenStack(registry)
	east := all.Of("east")
	all.Of("west")
	login := httptest.NewRequest(http.MethodPost, "http://cloud/v3/auth/tokens", http.NoBody)
	other := httptest.NewRequest(http.MethodGet, "http://cloud/v3/p/volumes/1", http.NoBody)
	for _, step := range []struct {
		request *http.Request
		status  int
		want    string
	}{{login, 503, "0"}, {other, 401, "0"}, {login, 401, "1"}, {login, 0, "1"}, {other, 200, "1"}, {login, 201, "0"}, {login, 403, "1"}, {login, 201, "0"}, {login, 404, "1"}} {
		east.Answered(step.request, step.status, 0)
		wantOn(t, registry, `cinder_csi_openstack_credentials_refused{cloud="east"} `+step.want, `cinder_csi_openstack_credentials_refused{cloud="west"} 0`)
	}
}
