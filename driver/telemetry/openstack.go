// Package telemetry holds the metrics of the driver, for Prometheus. The counts begin at zero after a restart.
package telemetry

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// login is the request that sends credentials.
const login = "token_create"

// requests are the values of the label "request". Upstream's names come first, so that existing dashboards keep working; the others are
// ours. The first row that matches decides.
var requests = []struct {
	method string
	path   *regexp.Regexp
	name   string
	body   string // its prefix, where path and method are not enough
}{
	{http.MethodPost, regexp.MustCompile(`/volumes$`), "volume_create", ""},
	{http.MethodGet, regexp.MustCompile(`/volumes/detail$`), "volume_list", ""},
	{http.MethodGet, regexp.MustCompile(`/volumes/[^/]+$`), "volume_get", ""},
	{http.MethodDelete, regexp.MustCompile(`/volumes/[^/]+$`), "volume_delete", ""},
	{http.MethodPost, regexp.MustCompile(`/volumes/[^/]+/action$`), "volume_retype", `{"os-retype"`},
	{http.MethodPost, regexp.MustCompile(`/volumes/[^/]+/action$`), "volume_expand", ""},
	{http.MethodPost, regexp.MustCompile(`/snapshots$`), "snapshot_create", ""},
	{http.MethodGet, regexp.MustCompile(`/snapshots/detail$`), "snapshot_list", ""},
	{http.MethodGet, regexp.MustCompile(`/snapshots/[^/]+$`), "snapshot_get", ""},
	{http.MethodDelete, regexp.MustCompile(`/snapshots/[^/]+$`), "snapshot_delete", ""},
	{http.MethodPost, regexp.MustCompile(`/os-volume_attachments$`), "volume_attach", ""},
	{http.MethodDelete, regexp.MustCompile(`/os-volume_attachments/[^/]+$`), "volume_detach", ""},
	{http.MethodGet, regexp.MustCompile(`/os-volume_attachments$`), "server_attachments", ""},
	{http.MethodGet, regexp.MustCompile(`/servers/[^/]+$`), "server_get", ""},
	{http.MethodGet, regexp.MustCompile(`/messages$`), "message_list", ""},
	{http.MethodPost, regexp.MustCompile(`/volumes/[^/]+/metadata$`), "metadata_add", ""},
	{http.MethodGet, regexp.MustCompile(`/types$`), "type_list", ""},
	{http.MethodGet, regexp.MustCompile(`/types/default$`), "type_default", ""},
	{http.MethodGet, regexp.MustCompile(`/os-quota-sets/[^/]+$`), "quota_get", ""},
	{http.MethodGet, regexp.MustCompile(`/os-availability-zone$`), "zone_list", ""},
	{http.MethodPost, regexp.MustCompile(`/auth/tokens$`), login, ""},
}

func nameOf(r *http.Request) string {
	for _, known := range requests {
		if r.Method == known.method && known.path.MatchString(r.URL.Path) && begins(r, known.body) {
			return known.name
		}
	}
	return "other"
}

// begins reports whether the body of a request begins with text. It reads a copy.
func begins(r *http.Request, text string) bool {
	if text == "" {
		return true
	}
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	head := make([]byte, len(text))
	_, err = io.ReadFull(body, head)
	return err == nil && string(head) == text
}

// OpenStack counts requests to OpenStack.
type OpenStack struct {
	total, errors *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	answers       *prometheus.CounterVec
	refused       *prometheus.GaugeVec
}

// NewOpenStack registers the metrics: upstream's three, and one by status code.
func NewOpenStack(registry prometheus.Registerer) *OpenStack {
	byRequest := []string{"request"}
	m := &OpenStack{
		total:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openstack_api_requests_total", Help: "Requests to OpenStack."}, byRequest),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openstack_api_request_errors_total", Help: "Requests to OpenStack without an answer, or with a status of 400 or above."}, byRequest),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "openstack_api_request_duration_seconds", Help: "Time until OpenStack answered."}, byRequest),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cinder_csi_openstack_answers_total", Help: "Answers of OpenStack by HTTP status; code 0 means no answer.",
		}, []string{"request", "code"}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cinder_csi_openstack_credentials_refused", Help: "1 if Keystone refused the credentials at the latest login (HTTP 401 or 403), otherwise 0.",
		}, []string{"cloud"}),
	}
	registry.MustRegister(m.total, m.errors, m.duration, m.answers, m.refused)
	return m
}

// Of returns the meter of one cloud.
func (m *OpenStack) Of(cloud string) *CloudRequests {
	return &CloudRequests{all: m, refused: m.refused.WithLabelValues(cloud)}
}

// CloudRequests counts the requests to one cloud. It implements transport.Meter.
type CloudRequests struct {
	all     *OpenStack
	refused prometheus.Gauge
}

// Answered counts a request. Status 0 means that there was no answer.
func (c *CloudRequests) Answered(req *http.Request, status int, took time.Duration) {
	name := nameOf(req)
	c.all.answered(name, status, took)
	if name != login {
		return
	}
	switch { // an outage says nothing about the credentials
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		c.refused.Set(1)
	case status >= 200 && status < 300:
		c.refused.Set(0)
	}
}

func (m *OpenStack) answered(name string, status int, took time.Duration) {
	m.total.WithLabelValues(name).Inc()
	m.duration.WithLabelValues(name).Observe(took.Seconds())
	m.answers.WithLabelValues(name, strconv.Itoa(status)).Inc()
	if status == 0 || status >= 400 {
		m.errors.WithLabelValues(name).Inc()
	}
}
