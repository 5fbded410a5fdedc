package plan

import (
	"cmp"
	"crypto/tls"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// checkOpenShift checks the settings of one target that would be ignored on another, and those that no decision reads again.
func (d *decider) checkOpenShift() {
	o, profile := d.given.OpenShift, d.given.Monitoring.TLS
	if o.Monitoring != "" && !d.openShift() {
		d.problem("spec.openshift.monitoring: is for OpenShift alone; leave it out")
	}
	if d.target != v1alpha1.Standalone {
		for _, key := range []struct {
			path  string
			asked bool
		}{
			{"spec.openshift.controlPlaneTopology", o.ControlPlaneTopology != ""},
			{"spec.monitoring.tls", profile.MinVersion != "" || len(profile.CipherSuites) > 0},
		} {
			if key.asked {
				d.problem("%s: is for --target standalone alone; leave it out", key.path)
			}
		}
	}
	if len(o.ClusterNetworks) > 0 && !d.openShift() {
		d.problem("spec.openshift.clusterNetworks: is for OpenShift alone; put the networks into spec.roles.controller.proxy.noProxy")
	}
	d.networks("spec.openshift.clusterNetworks", o.ClusterNetworks)
	d.checkKubelet("spec.driver.kubeletDir", d.given.Driver.KubeletDir)
	for i, pool := range d.given.NodePools {
		d.checkKubelet(item("spec.nodePools", i)+".kubeletDir", pool.KubeletDir)
	}
	for i, name := range profile.CipherSuites {
		known := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) // OpenShift's profile Old has some of the second list
		if !slices.ContainsFunc(known, func(s *tls.CipherSuite) bool { return s.Name == name }) {
			d.problem("%s: Go's crypto/tls knows no cipher suite %q, so kube-rbac-proxy would not start; an example is TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", item("spec.monitoring.tls.cipherSuites", i), name)
		}
	}
}

// checkKubelet: the kubelet of OpenShift has one directory, and SELinux labels no other one for it.
func (d *decider) checkKubelet(key, dir string) {
	const kubelet = "/var/lib/kubelet"
	if d.openShift() && dir != "" && dir != kubelet {
		d.warn("%s: the kubelet of OpenShift uses %s; it does not find a driver in %s", key, kubelet, dir)
	}
}

// byControlPlane is how the control plane's topology places the controller of a stand-alone cluster.
func (d *decider) byControlPlane(w *Workload) {
	const key = "spec.openshift.controlPlaneTopology"
	switch topology := d.given.OpenShift.ControlPlaneTopology; topology {
	case v1alpha1.SingleReplica:
		if d.given.Roles.Controller.Replicas == nil {
			w.Replicas = Decision[int]{Value: 1, Source: FromConfig, Reason: key + " is SingleReplica: the control plane has one node"}
		}
	case v1alpha1.External:
		orElse(&w.NodeSelector, nil, key+" is External: no node of the cluster has the control plane's label")
		return
	case "":
	default:
		if d.given.Roles.Controller.Replicas == nil {
			w.Replicas.Source, w.Replicas.Reason = FromConfig, key+" is "+topology+": one leads and the other takes over"
		}
	}
	orElse(&w.NodeSelector, map[string]string{controlPlaneLabel: ""}, "on the nodes of the control plane, as OpenShift's own components")
}

// alwaysDirect are what a container reaches without a proxy: the metadata service of Nova and the cluster itself.
var alwaysDirect = []string{"169.254.169.254", "localhost", "127.0.0.1", ".svc", ".cluster.local"}

// completed is a proxy with a complete NO_PROXY. A proxy cannot reach the metadata service of a server, and the traffic of the API server
// should stay in the cluster.
func (d *decider) completed(proxy Decision[v1alpha1.Proxy]) Decision[v1alpha1.Proxy] {
	if proxy.Value.HTTP == "" && proxy.Value.HTTPS == "" {
		return proxy
	}
	direct := alwaysDirect
	if d.target == v1alpha1.HostedControlPlane {
		direct = append(slices.Clone(direct), "kube-apiserver") // the guest's, in the controller's namespace
	}
	entries := strings.FieldsFunc(proxy.Value.NoProxy, func(r rune) bool { return r == ',' || r == ' ' })
	for _, entry := range slices.Concat(direct, d.given.OpenShift.ClusterNetworks) {
		if !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	proxy.Value.NoProxy = strings.Join(entries, ",")
	proxy.Reason += "; noProxy is completed with the metadata service and the cluster's own names and networks"
	return proxy
}

// CredentialOperator is the owner of a Secret that OpenShift's Cloud Credential Operator writes.
const CredentialOperator = "CloudCredentialOperator"

// credentialsRequest is whether OpenShift's Cloud Credential Operator fills the Secret. It writes one key and one entry only, and it writes
// over what a person put there.
func (d *decider) credentialsRequest(credentials *Decision[Credentials]) Decision[bool] {
	const key = "spec.credentials.request"
	given, request := d.given.Credentials, d.spec.Credentials.Request
	operators := d.spec.Credentials.Key == v1alpha1.DefaultCredentialsKey && d.spec.Credentials.Cloud == v1alpha1.DefaultCloudEntry
	decision := Decision[bool]{Source: sourceOf(given.Request != "")}
	switch {
	case d.target != v1alpha1.Standalone:
		if request == v1alpha1.Enabled {
			d.problem("%s: only --target standalone has the Cloud Credential Operator beside the controller; leave it out", key)
		}
	case request == v1alpha1.Disabled:
		decision.Reason = key + " is disabled: a person creates the Secret"
	case request == v1alpha1.Enabled && !operators:
		d.problem("%s: the Cloud Credential Operator writes the key %s with the entry %s; leave spec.credentials.key and cloud out", key, v1alpha1.DefaultCredentialsKey, v1alpha1.DefaultCloudEntry)
	case request == v1alpha1.Auto && given.SecretName != "":
		decision.Reason = "spec.credentials.secretName names a Secret of yours, and the operator would write over it"
	case request == v1alpha1.Auto && !operators:
		decision.Reason = "spec.credentials.key or cloud is not what the operator writes: a person creates the Secret"
	default:
		decision.Value, decision.Reason = true, "OpenShift's Cloud Credential Operator fills the Secret and keeps it current"
		credentials.Value.Owner = CredentialOperator
		credentials.Reason = "OpenShift's Cloud Credential Operator makes this Secret beside the controller; the generator never sees its content"
	}
	return decision
}

// intermediate are the cipher suites of OpenShift's TLS profile Intermediate. Without a value kube-rbac-proxy takes suites with CBC too.
const intermediate = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

// metricsTLS is how a stand-alone cluster's Prometheus reads the metrics. A PodMonitor names no certificate of a Service.
func (d *decider) metricsTLS(kind string) (Decision[MetricsTLS], Decision[bool]) {
	metrics, platform := Decision[MetricsTLS]{Source: Default}, Decision[bool]{Source: Default}
	if d.given.Images.RBACProxy != (v1alpha1.Image{}) && (d.target != v1alpha1.Standalone || kind != v1alpha1.ServiceMonitor) {
		d.warn("spec.images.%s has no effect: only a ServiceMonitor on standalone has kube-rbac-proxy", rbacProxy)
	}
	if !d.openShift() || kind == v1alpha1.None {
		return metrics, platform
	}
	o, profile := d.spec.OpenShift, d.given.Monitoring.TLS
	o.Monitoring = cmp.Or(o.Monitoring, v1alpha1.PlatformMonitoring)
	platform.Source, platform.Reason = sourceOf(d.given.OpenShift.Monitoring != ""), "OpenShift's Prometheus for user workloads reads the metrics"
	if o.Monitoring == v1alpha1.PlatformMonitoring {
		platform.Value, platform.Reason = true, "OpenShift's own Prometheus reads the metrics, as those of the built-in driver; spec.openshift.monitoring is "+o.Monitoring
	}
	if d.target == v1alpha1.HostedControlPlane {
		if platform.Value {
			platform.Reason = "the Prometheus of the guest's platform reads the metrics of the nodes; spec.openshift.monitoring is " + o.Monitoring
		}
		return metrics, platform
	}
	if kind != v1alpha1.ServiceMonitor {
		metrics.Reason = "with spec.monitoring.kind PodMonitor the metrics are served without TLS; a ServiceMonitor has it"
		return metrics, platform
	}
	metrics.Value = MetricsTLS{Enabled: true, MinVersion: cmp.Or(profile.MinVersion, "VersionTLS12"), CipherSuites: intermediate}
	d.proxied = true
	metrics.Reason = "kube-rbac-proxy serves the controller's metrics, with a certificate of OpenShift's service CA"
	if len(profile.CipherSuites) > 0 {
		metrics.Value.CipherSuites = strings.Join(profile.CipherSuites, ",")
	}
	if profile.MinVersion != "" || len(profile.CipherSuites) > 0 {
		metrics.Source, metrics.Reason = FromConfig, metrics.Reason+"; spec.monitoring.tls is set"
	}
	return metrics, platform
}

// adopted: OpenShift marks the CSIDriver objects of its own drivers, and takes one without the mark for a foreign one.
func (d *decider) adopted() Decision[bool] {
	adopt := d.openShift() && d.spec.OpenShift.Coexistence == v1alpha1.Adopt
	return configuredAs(adopt, adopt, "spec.openshift.coexistence")
}
