package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Family describes one family of metrics.
type Family struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// Kind is the type of a family, as /metrics names it.
type Kind string

// The kinds of families.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Every family of the driver. Alerts and dashboards of users depend on the names and labels, and docs/reference/metrics.md shows this table.
// Upstream has the names that begin with openstack_api.
var (
	buildInfo = define("cinder_csi_build_info", Gauge,
		"The version of the driver and of Go; the value is always 1.", "version", "go_version")
	panicsSeen = define("cinder_csi_panics_total", Counter,
		"Panics, which are defects of the driver; the log has the stack.")

	rpcDuration = define("cinder_csi_rpc_duration_seconds", Histogram,
		"Duration of RPCs, by method and gRPC code.", "method", "code")
	rpcErrors = define("cinder_csi_rpc_errors_total", Counter,
		"RPCs that ended with an error, by the ID of its cause; kubectl cinder explain ID says what it means and what to do.", "cause")
	rpcsRunning = define("cinder_csi_rpcs_running", Gauge,
		"RPCs in progress, by method.", "method")
	operationPending = define("cinder_csi_operation_pending_seconds", Gauge,
		"Age of the oldest operation on one object that has not succeeded yet, including its failed RPCs and the pauses between them, by method. "+
			"/debug/operations names the objects.", "method")

	configReloads = define("cinder_csi_config_reloads_total", Counter,
		"Reloads of configuration files by result. After a failure the driver keeps the old configuration and retries every minute.", "result")
	configLastReload = define("cinder_csi_config_last_reload_success_timestamp_seconds", Gauge,
		"When the driver loaded the present configuration, as a Unix time.")
	configComplaints = define("cinder_csi_config_complaints", Gauge,
		"Keys, sections and values of cloud.conf that the driver ignores because it does not know them.")
	configInsecure = define("cinder_csi_config_insecure_settings", Gauge,
		"Settings that let others read or change the traffic to a cloud, or use the driver: unverified certificates, http URLs, a TCP endpoint.")
	lenientInputs = define("cinder_csi_lenient_inputs_total", Counter,
		"Settings and class parameters that the driver accepted, and that --strict refuses, by kind.", "kind")

	apiRequests = define("openstack_api_requests_total", Counter,
		"Requests to OpenStack.", "request")
	apiErrors = define("openstack_api_request_errors_total", Counter,
		"Requests to OpenStack without an answer, or with a status of 400 or above.", "request")
	apiDuration = define("openstack_api_request_duration_seconds", Histogram,
		"Time until OpenStack answered.", "request")
	apiAnswers = define("cinder_csi_openstack_answers_total", Counter,
		"Answers of OpenStack by HTTP status; code 0 means no answer, and other a status that HTTP does not define.", "request", "code")
	credentialsRefused = define("cinder_csi_openstack_credentials_refused", Gauge,
		"1 if Keystone refused the credentials at the latest login (HTTP 401, 403, or 404 for one that was deleted), otherwise 0.", "cloud")

	cloudUnavailable = define("cinder_csi_openstack_unavailable", Gauge,
		"1 for each service of the cloud that the driver could not use at the latest check, once a minute; else 0. "+
			"service is identity, block-storage or compute. reason is no_connection, tls, credentials, server_error, configuration or other_cloud.", "cloud", "service", "reason")
	credentialExpires = define("cinder_csi_openstack_credential_expires_timestamp_seconds", Gauge,
		"When the application credential, or the password of the user, expires, as a Unix time. No value: it never expires, or Keystone does not show it. "+
			"The driver asks every ten minutes.", "cloud")

	budgetLimit = define("cinder_csi_openstack_budget_per_second", Gauge,
		"Requests a second that the driver sends on average; kind is read or write. Lower than configured after the cloud asked for fewer.",
		"cloud", "kind")
	budgetWait = define("cinder_csi_openstack_throttle_wait_seconds", Histogram,
		"How long requests waited for the limit; requests that did not wait are not counted.", "cloud", "kind")
	budgetThrottled = define("cinder_csi_openstack_throttled_total", Counter,
		"Answers that ask for fewer requests, by HTTP status (429, 498, and 503 with Retry-After).", "cloud", "kind", "code")

	hubWaiters = define("cinder_csi_hub_waiters", Gauge,
		"RPCs that wait for an object to change; kind is volume, snapshot, backup or server.", "cloud", "kind")
	hubOldestWait = define("cinder_csi_hub_oldest_wait_seconds", Gauge,
		"How long the oldest waiter has waited; 0 without waiters.", "cloud", "kind")
	hubCalls = define("cinder_csi_hub_calls_total", Counter,
		"Requests to the cloud for the waiters: single (one object), list (all objects), changes (changed objects).", "cloud", "kind", "how")

	duplicates = define("cinder_csi_duplicates_total", Counter,
		"How often a create found a second object with the same name that the driver must not delete; kind is volume, snapshot or backup. "+
			"The log has the ids.", "cloud", "kind")

	// A quota is either in bytes or in objects, so the two have names of their own.
	quotaLimitBytes = define("cinder_csi_quota_limit_bytes", Gauge,
		"The project's quotas in Cinder for sizes: of volumes and snapshots together (volumes), of backups, and of a single volume (volume). "+
			"+Inf means no limit, an empty type all types.", "resource", "type")
	quotaUsedBytes = define("cinder_csi_quota_used_bytes", Gauge,
		"Used and reserved part of the quotas for sizes.", "resource", "type")
	quotaLimitObjects = define("cinder_csi_quota_limit_objects", Gauge,
		"The project's quotas in Cinder for numbers of objects, such as volumes, snapshots and backups. "+
			"+Inf means no limit, an empty type all types.", "resource", "type")
	quotaUsedObjects = define("cinder_csi_quota_used_objects", Gauge,
		"Used and reserved part of the quotas for numbers of objects.", "resource", "type")
	quotaRead = define("cinder_csi_quota_read_timestamp_seconds", Gauge,
		"When the driver read the quotas, as a Unix time.")

	nodeVolumes = define("cinder_csi_node_volumes", Gauge,
		"Volumes that are attached to the node or arrive; without foreign volumes.")
	nodeLimit = define("cinder_csi_node_volume_limit", Gauge,
		"How many volumes the node can have; 0 before the driver has calculated it.")
	nodeRegistered = define("cinder_csi_node_registered", Gauge,
		"1 if kubelet has called NodeGetInfo since the pod started, otherwise 0. Without that call the node mounts no volume.")
	nodeUnhealthy = define("cinder_csi_node_volume_unhealthy", Gauge,
		"1 for each finding about a volume of this node. Volumes without a finding have no series. reason is FileSystemReadOnly (after an error), "+
			"FileSystemErrors (ext4 recorded some), NotResponding (the disk hangs) or InputOutputError (the disk is dead).", "volume", "reason")
	nodeLimitPart = define("cinder_csi_node_volume_limit_part", Gauge,
		"The parts of a calculated limit: attached + arriving + free - reserve, without foreign volumes. A configured limit, and the default, "+
			"have no parts.", "part")
	nodeZoneChanged = define("cinder_csi_node_zone_changed", Gauge,
		"1 if the zone of the server differs from the zone in which the node was registered. The log says what to do.")
)

var families []*Family

func define(name string, kind Kind, help string, labels ...string) *Family {
	f := &Family{name, kind, labels, help}
	families = append(families, f)
	return f
}

// Families lists every family of the driver.
func Families() []*Family { return slices.Clone(families) }

func registered[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	registry.MustRegister(c)
	return c
}

func (f *Family) counter(registry prometheus.Registerer) *prometheus.CounterVec {
	return registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels))
}

func (f *Family) gauge(registry prometheus.Registerer) *prometheus.GaugeVec {
	return registered(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels))
}

// histogram has Prometheus' own buckets if none are given.
func (f *Family) histogram(registry prometheus.Registerer, buckets ...float64) *prometheus.HistogramVec {
	return registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: buckets}, f.Labels))
}

// desc describes a gauge whose values are read at each scrape.
func (f *Family) desc() *prometheus.Desc { return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil) }
