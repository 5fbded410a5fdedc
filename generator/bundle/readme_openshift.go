package bundle

import (
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// openShiftPrerequisites are what OpenShift's own operators make for the bundle.
func (w *text) openShiftPrerequisites(r plan.Result) {
	if r.CredentialsRequest.Value {
		w.line("- OpenShift's Cloud Credential Operator, in namespace `%s` and not in mode Manual: it makes that Secret.", credentialOperator)
	}
	if r.MetricsTLS.Value.Enabled {
		w.line("- OpenShift's service CA: it makes the Secret `%s` with the certificate of the metrics, and the controller's pods wait for it.", metricsService)
	}
	if r.Hosted.Value && r.Monitoring.Value != v1alpha1.None {
		w.hostedMonitoring(r)
	} else if r.PlatformMonitoring.Value {
		w.line("- OpenShift's own Prometheus, account `openshift-monitoring/prometheus-k8s`. The label `openshift.io/cluster-monitoring` of the namespaces lets it read them.")
	} else if r.MetricsTLS.Value.Enabled {
		w.line("- OpenShift's monitoring of user workloads, which is off until `enableUserWorkload: true` is set in ConfigMap `openshift-monitoring/cluster-monitoring-config`.")
	}
}

// hostedMonitoring is about the two Prometheus servers of a hosted cluster: each half of the bundle has its own.
func (w *text) hostedMonitoring(r plan.Result) {
	if r.PlatformMonitoring.Value {
		w.line("- In the guest, OpenShift's own Prometheus, account `openshift-monitoring/prometheus-k8s`: it reads the metrics of the nodes in namespace `%s`.", r.NodeNamespace.Value)
	} else {
		w.line("- In the guest, OpenShift's monitoring of user workloads, for the metrics of the nodes. It is off until `enableUserWorkload: true` is set in ConfigMap `openshift-monitoring/cluster-monitoring-config`.")
	}
	w.line("- In the management cluster, a Prometheus that reads the namespace `%s`, for the metrics of the controller.", r.ControllerNamespace.Value)
}

// requested is about credentials that a person does not create.
func (w *text) requested(r plan.Result) {
	c, ns, request := r.Credentials.Value, r.ControllerNamespace.Value, v1alpha1.ClusterPrefix(r.Driver.Value)
	w.line("The bundle asks OpenShift's Cloud Credential Operator for them, with CredentialsRequest `%s`. The operator copies the cluster's own", request)
	w.line("credentials into the Secret `%s`, and updates it when they change. The driver reads the Secret again without a restart.", c.SecretName)
	w.line("For credentials of the driver's own set `spec.credentials.request: disabled`. Once the bundle is applied, this shows `true` and the Secret:\n")
	w.line("```sh")
	w.line("oc --namespace %s get credentialsrequest %s -o jsonpath='{.status.provisioned}'", credentialOperator, shell.Word(request))
	w.line("oc --namespace %s get secret %s", shell.Word(ns), shell.Word(c.SecretName))
	w.line("```\n")
	w.line("If a private CA has signed the certificates of OpenStack, the operator also copies it, into the key `cacert`, from OpenShift 4.19 on.")
	w.line("The driver trusts it and reads it again when it changes. If the Secret has no such key, set `spec.credentials.caBundle`.")
}

// takeOver is about OpenShift's own driver where its name is taken: its operator must no longer write what it made.
func (w *text) takeOver(r plan.Result) {
	if r.Target != v1alpha1.Standalone || r.Config.OpenShift.Coexistence != v1alpha1.Adopt || r.Driver.Value != contract.DriverName {
		return
	}
	w.line("  OpenShift's built-in driver has it. `cinder-csi-generator adopt $DIR` prints how to end that one before this one is applied, and the way back.")
}
