package bundle

const credentialOperator = "openshift-cloud-credential-operator"

// metricsTLS is whether kube-rbac-proxy serves the metrics of the controller.
func (p *plane) metricsTLS() bool { return p.r.MetricsTLS.Value.Enabled }

func (p *plane) tlsValues() node {
	t := p.r.MetricsTLS
	values := object{"enabled": decidedField(t, "enabled", t.Value.Enabled)}
	if t.Value.Enabled {
		values["cipherSuites"], values["minVersion"] = decidedField(t, "cipherSuites", t.Value.CipherSuites), decidedField(t, "minVersion", t.Value.MinVersion)
	}
	return values
}

const metricsService = "cinder-csi-controller-metrics-tls" // and the Secret with its certificate
