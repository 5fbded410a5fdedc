package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// credentialsRequest asks OpenShift's Cloud Credential Operator for the Secret. The operator reads requests of its own namespace alone.
func (p *plane) credentialsRequest() node {
	const api = "cloudcredential.openshift.io/v1"
	return under(object{
		"apiVersion": fixed(api), "kind": fixed("CredentialsRequest"),
		"metadata": object{"name": p.clusterName(basePrefix, refOf(p.r.CredentialsRequest)), "namespace": fixed(credentialOperator), "labels": fixed(labels("controller"))},
		"spec": object{
			"secretRef":    object{"name": part(p.r.Credentials, "secretName", p.r.Credentials.Value.SecretName), "namespace": whole(p.controllerNS)},
			"providerSpec": fixed(map[string]any{"apiVersion": api, "kind": "OpenStackProviderSpec"}),
		},
	}, refOf(p.r.CredentialsRequest))
}

const credentialOperator = "openshift-cloud-credential-operator"

// metricsTLS is whether kube-rbac-proxy serves the metrics of the controller.
func (p *plane) metricsTLS() bool { return p.r.MetricsTLS.Value.Enabled }

// tlsOn is the decision that switches on what that needs.
func (p *plane) tlsOn() Ref { return Ref{p.r.MetricsTLS.ID, "enabled"} }

// tlsPort is the name of the port on which kube-rbac-proxy serves the metrics of a container.
func tlsPort(container string) string { return container + "-m" }

func (p *plane) tlsSettings() object {
	t := p.r.MetricsTLS
	if !t.Value.Enabled {
		return object{}
	}
	return object{"TLS_CIPHER_SUITES": part(t, "cipherSuites", t.Value.CipherSuites), "TLS_MIN_VERSION": part(t, "minVersion", t.Value.MinVersion)}
}

func (p *plane) tlsValues() node {
	t := p.r.MetricsTLS
	values := object{"enabled": part(t, "enabled", t.Value.Enabled)}
	if t.Value.Enabled {
		values["cipherSuites"], values["minVersion"] = part(t, "cipherSuites", t.Value.CipherSuites), part(t, "minVersion", t.Value.MinVersion)
	}
	return values
}

const (
	metricsReader  = "cinder-csi-metrics-reader"
	metricsService = "cinder-csi-controller-metrics-tls" // and the Secret with its certificate
	// serviceCA is the ConfigMap with the service CA that OpenShift puts into every namespace.
	serviceCA, serviceCAKey = "openshift-service-ca.crt", "service-ca.crt"
	rbacGroup               = "rbac.authorization.k8s.io"
)

// prometheus are the objects by which OpenShift's Prometheus finds and reads the metrics.
func (p *plane) prometheus() []node {
	var docs []node
	if p.r.PlatformMonitoring.Value {
		if p.controller && !p.hosted() { // the namespace of a hosted control plane is HyperShift's
			docs = append(docs, p.discovery(p.controllerNS, "controller")...)
		}
		if p.node {
			docs = append(docs, p.discovery(p.nodeNS, "node")...)
		}
	}
	if p.controller && p.metricsTLS() {
		docs = append(docs, p.reader()...)
		docs = append(docs, p.tlsMonitor())
	}
	return docs
}

// discovery lets the Prometheus of the platform find the pods of a namespace. That of user workloads finds those of every namespace.
func (p *plane) discovery(namespace plan.Decision[string], component string) []node {
	name := "cinder-csi-" + component + "-prometheus"
	meta := func() object {
		return object{"name": fixed(name), "namespace": whole(namespace), "labels": fixed(labels(component))}
	}
	role := object{
		"apiVersion": fixed(rbacGroup + "/v1"), "kind": fixed("Role"), "metadata": meta(),
		"rules": fixed([]any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"services", "endpoints", "pods"}, "verbs": []any{"get", "list", "watch"},
		}}),
	}
	binding := object{
		"apiVersion": fixed(rbacGroup + "/v1"), "kind": fixed("RoleBinding"), "metadata": meta(),
		"roleRef":  fixed(map[string]any{"apiGroup": rbacGroup, "kind": "Role", "name": name}),
		"subjects": fixed([]any{map[string]any{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}}),
	}
	return []node{under(role, refOf(p.r.PlatformMonitoring)), under(binding, refOf(p.r.PlatformMonitoring))}
}

// reader is the account by which Prometheus reads the metrics, with that right alone. Its token is in a Secret that Kubernetes fills, because
// the Prometheus of user workloads refuses a ServiceMonitor that names a file.
func (p *plane) reader() []node {
	meta := func(namespaced bool) object {
		m := object{"name": p.clusterName(metricsReader, p.tlsOn()), "labels": fixed(labels("controller"))}
		if namespaced {
			m["name"], m["namespace"] = fixed(metricsReader), whole(p.controllerNS)
		}
		return m
	}
	secret := meta(true)
	secret["annotations"] = fixed(map[string]any{"kubernetes.io/service-account.name": metricsReader})
	docs := []object{
		{"apiVersion": fixed("v1"), "kind": fixed("ServiceAccount"), "metadata": meta(true), "automountServiceAccountToken": fixed(false)},
		{"apiVersion": fixed("v1"), "kind": fixed("Secret"), "metadata": secret, "type": fixed("kubernetes.io/service-account-token")},
		{
			"apiVersion": fixed(rbacGroup + "/v1"), "kind": fixed("ClusterRole"), "metadata": meta(false),
			"rules": fixed([]any{map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}}),
		},
		{
			"apiVersion": fixed(rbacGroup + "/v1"), "kind": fixed("ClusterRoleBinding"), "metadata": meta(false),
			"roleRef":  object{"apiGroup": fixed(rbacGroup), "kind": fixed("ClusterRole"), "name": p.clusterName(metricsReader, p.tlsOn())},
			"subjects": list{object{"kind": fixed("ServiceAccount"), "name": fixed(metricsReader), "namespace": whole(p.controllerNS)}},
		},
	}
	var nodes []node
	for _, d := range docs {
		nodes = append(nodes, under(d, p.tlsOn()))
	}
	return nodes
}

// monitorLabels are those of a monitor that manifests/ does not have.
func (p *plane) monitorLabels() node {
	d := p.r.MonitoringLabels
	return merge(objectOf(part(d, "", d.Value)), objectOf(fixed(labels("controller"))))
}

// tlsMonitor names secrets and certificates by reference, so that both of OpenShift's Prometheus servers accept it.
func (p *plane) tlsMonitor() node {
	endpoints := list{}
	for _, name := range p.measured() {
		endpoint := object{
			"port": fixed(tlsPort(name)), "path": fixed("/metrics"), "scheme": fixed("https"), "interval": fixed("30s"),
			"authorization": fixed(map[string]any{"type": "Bearer", "credentials": map[string]any{"name": metricsReader, "key": "token"}}),
			"tlsConfig": object{
				"ca":         fixed(map[string]any{"configMap": map[string]any{"name": serviceCA, "key": serviceCAKey}}),
				"serverName": part(p.controllerNS, "", metricsService+"."+p.controllerNS.Value+".svc"),
			},
		}
		if name == "snapshotter" {
			endpoint = objectOf(also(endpoint, p.snapshotsOn(), p.tlsOn()))
		}
		endpoints = append(endpoints, endpoint)
	}
	return under(object{
		"apiVersion": fixed("monitoring.coreos.com/v1"), "kind": fixed("ServiceMonitor"),
		"metadata": object{"name": fixed("cinder-csi-controller-tls"), "namespace": whole(p.controllerNS), "labels": p.monitorLabels()},
		"spec": object{
			"selector":  object{"matchLabels": fixed(map[string]string{"app.kubernetes.io/name": "cinder-csi", componentLabel: "controller"})},
			"endpoints": endpoints,
		},
	}, p.tlsOn())
}
