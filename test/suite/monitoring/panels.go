package monitoring

// Series of the pods of one role. Both roles have metrics of RPCs, of the process and of the configuration.
const (
	ofController = `NS,pod=~"cinder-csi-controller-.+"`
	ofNode       = `NS,pod=~"cinder-csi-node-.+"`
)

// ByRole are the dashboards of each role. Where the roles are in two clusters, so are their dashboards.
var ByRole = map[string][]Dashboard{
	"controller": {controllerDashboard, cloudDashboard},
	"node":       {nodeDashboard},
}

var controllerDashboard = Dashboard{Name: "controller", Title: "Cinder CSI controller", Panels: []Panel{
	{"Pending operations", "Age of the oldest operation that has not succeeded, with all its retries. Above 15 minutes an alert fires.", "s", []Query{
		{`max by (method) (cinder_csi_operation_pending_seconds{` + ofController + `})`, "{{method}}"},
	}},
	{"RPCs in progress", "Requests of the sidecars that the driver works on.", "none", []Query{
		{`sum by (method) (cinder_csi_rpcs_running{` + ofController + `})`, "{{method}}"},
	}},
	{"RPCs by result", "Ended RPCs a second by method and gRPC code. The sidecars repeat an RPC that fails.", "reqps", []Query{
		{`sum by (method, code) (rate(cinder_csi_rpc_duration_seconds_count{` + ofController + `}[RATE]))`, "{{method}} {{code}}"},
	}},
	{"Duration of RPCs", "95 % of the RPCs of a method are faster.", "s", []Query{
		{`histogram_quantile(0.95, sum by (method, le) (rate(cinder_csi_rpc_duration_seconds_bucket{` + ofController + `}[RATE])))`, "{{method}}"},
	}},
	{"RPCs that wait for the cloud", "RPCs that wait until an object changes, by kind of object.", "none", []Query{
		{`sum by (cloud, kind) (cinder_csi_hub_waiters{NS})`, "{{cloud}} {{kind}}"},
	}},
	{"Longest wait", "How long the oldest waiter has waited.", "s", []Query{
		{`max by (cloud, kind) (cinder_csi_hub_oldest_wait_seconds{NS})`, "{{cloud}} {{kind}}"},
	}},
	{"Configuration", "Failed reloads in an hour; settings that the driver ignores; settings that make a connection insecure.", "none", []Query{
		{`sum(increase(cinder_csi_config_reloads_total{` + ofController + `,result="failure"}[1h]))`, "failed reloads"},
		{`max(cinder_csi_config_complaints{` + ofController + `})`, "ignored settings"},
		{`max(cinder_csi_config_insecure_settings{` + ofController + `})`, "insecure settings"},
	}},
	{"Duplicates and lenient inputs", "In an hour: second objects of one name that the driver must not delete, and inputs that --strict refuses.", "none", []Query{
		{`sum by (cloud, kind) (increase(cinder_csi_duplicates_total{NS}[1h]))`, "duplicate {{kind}} {{cloud}}"},
		{`sum by (kind) (increase(cinder_csi_lenient_inputs_total{NS}[1h]))`, "{{kind}}"},
	}},
	{"Memory", "Resident memory of the driver, for each pod.", "bytes", []Query{
		{`process_resident_memory_bytes{` + ofController + `} and on (namespace, pod, instance) cinder_csi_build_info`, "{{pod}}"},
	}},
	{"Versions", "Pods by version of the driver.", "none", []Query{
		{`count by (version) (cinder_csi_build_info{` + ofController + `})`, "{{version}}"},
	}},
}}

var cloudDashboard = Dashboard{Name: "cloud", Title: "Cinder CSI requests to OpenStack", Panels: []Panel{
	{"Requests", "Requests a second, by what they ask for.", "reqps", []Query{
		{`sum by (request) (rate(openstack_api_requests_total{NS}[RATE]))`, "{{request}}"},
	}},
	{"Answers", "Answers a second by HTTP status. Code 0 means no answer.", "reqps", []Query{
		{`sum by (code) (rate(cinder_csi_openstack_answers_total{NS}[RATE]))`, "{{code}}"},
	}},
	{"Failed requests", "Share of the requests without an answer, or with a status of 400 or above.", "percentunit", []Query{
		// Prometheus extrapolates: two errors of a new counter can be more than two requests of an older one.
		{`clamp_max(sum by (request) (rate(openstack_api_request_errors_total{NS}[RATE])) / sum by (request) (rate(openstack_api_requests_total{NS}[RATE])), 1)`, "{{request}}"},
	}},
	{"Duration of requests", "95 % of the requests are faster.", "s", []Query{
		{`histogram_quantile(0.95, sum by (request, le) (rate(openstack_api_request_duration_seconds_bucket{NS}[RATE])))`, "{{request}}"},
	}},
	{"Services that do not answer", "1 while the driver cannot use a service of the cloud, by reason. The driver checks once a minute.", "none", []Query{
		{`max by (cloud, service, reason) (cinder_csi_openstack_unavailable{NS})`, "{{cloud}} {{service}} {{reason}}"},
	}},
	{"Credentials", "1 while Keystone refuses the login of the driver.", "none", []Query{
		{`max by (cloud) (cinder_csi_openstack_credentials_refused{NS})`, "refused {{cloud}}"},
	}},
	{"Throttling", "Answers a second that ask for fewer requests.", "reqps", []Query{
		{`sum by (cloud, kind, code) (rate(cinder_csi_openstack_throttled_total{NS}[RATE]))`, "{{cloud}} {{kind}} {{code}}"},
	}},
	{"Request limit", "Requests a second that the driver allows itself. After throttling it is lower than configured.", "reqps", []Query{
		{`min by (cloud, kind) (cinder_csi_openstack_budget_per_second{NS})`, "{{cloud}} {{kind}}"},
	}},
	{"Requests that wait for the limit", "Requests a second that had to wait.", "reqps", []Query{
		{`sum by (cloud, kind) (rate(cinder_csi_openstack_throttle_wait_seconds_count{NS}[RATE]))`, "{{cloud}} {{kind}}"},
	}},
	{"Requests for waiters", "Requests a second that find out whether objects have changed.", "reqps", []Query{
		{`sum by (cloud, kind, how) (rate(cinder_csi_hub_calls_total{NS}[RATE]))`, "{{cloud}} {{kind}} {{how}}"},
	}},
	{"Used quota", "Used part of the quotas of the project. There is data only with spec.driver.capacity.", "percentunit", []Query{
		{`max by (resource, type) (cinder_csi_quota_used_bytes{NS} / (cinder_csi_quota_limit_bytes{NS} > 0))`, "size of {{resource}} {{type}}"},
		{`max by (resource, type) (cinder_csi_quota_used_objects{NS} / (cinder_csi_quota_limit_objects{NS} > 0))`, "number of {{resource}} {{type}}"},
	}},
}}

var nodeDashboard = Dashboard{Name: "node", Title: "Cinder CSI nodes", Panels: []Panel{
	{"Volumes", "Volumes that are attached to each node.", "none", []Query{
		{`cinder_csi_node_volumes{NS}`, "{{instance}}"},
	}},
	{"Room for volumes", "How many more volumes each node takes. At 0 an alert fires. A node has no value until its driver has calculated the limit.", "none", []Query{
		{`(cinder_csi_node_volume_limit{NS} > 0) - cinder_csi_node_volumes{NS}`, "{{instance}}"},
	}},
	{"Volumes with a finding", "Volumes that are read-only after an error, or whose disk is dead or hangs. Any is an alert.", "none", []Query{
		{`count by (reason) (cinder_csi_node_volume_unhealthy{NS}) or vector(0)`, "{{reason}}"},
	}},
	{"Nodes that are not registered", "Nodes whose driver kubelet has not called since the pod started.", "none", []Query{
		{`count(cinder_csi_node_registered{NS} == 0) or vector(0)`, "nodes"},
	}},
	{"Parts of the limit", "What a node counted when it calculated its limit, summed over the nodes.", "none", []Query{
		{`sum by (part) (cinder_csi_node_volume_limit_part{NS})`, "{{part}}"},
	}},
	{"Nodes in another zone", "Nodes whose server is in another zone than the one in which the node was registered.", "none", []Query{
		{`sum(cinder_csi_node_zone_changed{NS})`, "nodes"},
	}},
	{"Pending operations", "Age of the oldest operation on a node that has not succeeded, with all its retries.", "s", []Query{
		{`max by (instance, method) (cinder_csi_operation_pending_seconds{` + ofNode + `})`, "{{instance}} {{method}}"},
	}},
	{"RPCs by result", "Ended RPCs a second by method and gRPC code. kubelet repeats an RPC that fails.", "reqps", []Query{
		{`sum by (method, code) (rate(cinder_csi_rpc_duration_seconds_count{` + ofNode + `}[RATE]))`, "{{method}} {{code}}"},
	}},
	{"Duration of RPCs", "95 % of the RPCs of a method are faster.", "s", []Query{
		{`histogram_quantile(0.95, sum by (method, le) (rate(cinder_csi_rpc_duration_seconds_bucket{` + ofNode + `}[RATE])))`, "{{method}}"},
	}},
	{"Failed reloads", "Reloads of the configuration that failed, in an hour.", "none", []Query{
		{`sum by (instance) (increase(cinder_csi_config_reloads_total{` + ofNode + `,result="failure"}[1h]))`, "{{instance}}"},
	}},
	{"Memory", "Resident memory of the driver, for each node.", "bytes", []Query{
		{`process_resident_memory_bytes{` + ofNode + `} and on (namespace, pod, instance) cinder_csi_build_info`, "{{instance}}"},
	}},
	{"Versions", "Nodes by version of the driver.", "none", []Query{
		{`count by (version) (cinder_csi_build_info{` + ofNode + `})`, "{{version}}"},
	}},
}}
