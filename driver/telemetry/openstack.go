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
	{http.MethodPost, regexp.MustCompile(`/backups$`), "backup_create", ""},
	{http.MethodGet, regexp.MustCompile(`/backups/detail$`), "backup_list", ""},
	{http.MethodGet, regexp.MustCompile(`/backups/[^/]+$`), "backup_get", ""},
	{http.MethodDelete, regexp.MustCompile(`/backups/[^/]+$`), "backup_delete", ""},
	{http.MethodPost, regexp.MustCompile(`/os-volume_attachments$`), "volume_attach", ""},
	{http.MethodDelete, regexp.MustCompile(`/os-volume_attachments/[^/]+$`), "volume_detach", ""},
	{http.MethodGet, regexp.MustCompile(`/os-volume_attachments$`), "server_attachments", ""},
	{http.MethodGet, regexp.MustCompile(`/servers/[^/]+$`), "server_get", ""},
	{http.MethodGet, regexp.MustCompile(`/attachments$`), "attachment_list", ""},
	{http.MethodGet, regexp.MustCompile(`/attachments/[^/]+$`), "attachment_get", ""},
	{http.MethodDelete, regexp.MustCompile(`/attachments/[^/]+$`), "attachment_delete", ""},
	{http.MethodGet, regexp.MustCompile(`/messages$`), "message_list", ""},
	{http.MethodPost, regexp.MustCompile(`/volumes/[^/]+/metadata$`), "metadata_add", ""},
	{http.MethodDelete, regexp.MustCompile(`/volumes/[^/]+/metadata/[^/]+$`), "metadata_remove", ""},
	{http.MethodGet, regexp.MustCompile(`/types$`), "type_list", ""},
	{http.MethodGet, regexp.MustCompile(`/types/default$`), "type_default", ""},
	{http.MethodGet, regexp.MustCompile(`/os-quota-sets/[^/]+$`), "quota_get", ""},
	{http.MethodGet, regexp.MustCompile(`/os-availability-zone$`), "zone_list", ""},
	{http.MethodPost, regexp.MustCompile(`/auth/tokens$`), login, ""},
	{http.MethodGet, regexp.MustCompile(`/auth/tokens$`), "token_get", ""},
	{http.MethodGet, regexp.MustCompile(`/application_credentials/[^/]+$`), "credential_get", ""},
	{http.MethodGet, regexp.MustCompile(`^(/[^/]+)?/v3/?$`), "keystone_check", ""}, // of the page /readyz
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
	return &OpenStack{
		total: apiRequests.counter(registry), errors: apiErrors.counter(registry), duration: apiDuration.histogram(registry),
		answers: apiAnswers.counter(registry), refused: credentialsRefused.gauge(registry),
	}
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
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNotFound: // of an application credential that was deleted, as Zed answers
		c.refused.Set(1)
	case status >= 200 && status < 300:
		c.refused.Set(0)
	}
}

// codeOf is the value of the label "code". A cloud can send any number, and each would be one more time series.
func codeOf(status int) string {
	if status != 0 && status != 498 && http.StatusText(status) == "" {
		return "other"
	}
	return strconv.Itoa(status)
}

func (m *OpenStack) answered(name string, status int, took time.Duration) {
	m.total.WithLabelValues(name).Inc()
	m.duration.WithLabelValues(name).Observe(took.Seconds())
	m.answers.WithLabelValues(name, codeOf(status)).Inc()
	if status == 0 || status >= 400 {
		m.errors.WithLabelValues(name).Inc()
	}
}
