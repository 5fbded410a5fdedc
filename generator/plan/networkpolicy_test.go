package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Without a reader, Prometheus is shut out, and the alert that the controller is absent would fire for ever.
func TestANetworkPolicyThatShutsPrometheusOutIsRefused(t *testing.T) {
	const shut = "spec: {networkPolicy: {enabled: true}, monitoring: {kind: PodMonitor}}"
	if got, want := refusal(t, cloudOf("fast"), shut, v1alpha1.Vanilla), "spec.networkPolicy.metricsNamespaces: is empty"; !strings.Contains(got, want) {
		t.Errorf("want %q, got %s", want, got)
	}
	decide(t, cloudOf("fast"), "spec: {networkPolicy: {enabled: true, metricsNamespaces: [monitoring]}, monitoring: {kind: PodMonitor}}", v1alpha1.Vanilla)
	decide(t, cloudOf("fast"), shut, v1alpha1.Standalone) // OpenShift's monitoring may always read them
	hosted := decide(t, cloudOf("fast"), shut, v1alpha1.HostedControlPlane)
	if want := "If the management cluster is not OpenShift, set it to the namespace of its Prometheus"; !strings.Contains(strings.Join(hosted.Warnings, "\n"), want) {
		t.Errorf("want a warning with %q, got %q", want, hosted.Warnings)
	}
}

func TestANetworkPolicyHasThePortsAndTheDNSOfTheConfiguration(t *testing.T) {
	policy := decide(t, cloudOf("fast"), "spec: {networkPolicy: {enabled: true, apiServerPorts: [16443, 443, 443], dnsCIDRs: [169.254.20.10/32]}}", v1alpha1.Vanilla).NetworkPolicy.Value
	if diff := cmp.Diff([]int{443, 16443}, policy.APIServerPorts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"169.254.20.10/32"}, policy.DNSCIDRs); diff != "" {
		t.Error(diff)
	}
	for spec, want := range map[string]string{
		"spec: {networkPolicy: {apiServerPorts: [0]}}":      "spec.networkPolicy.apiServerPorts[0]: 0 is no port",
		"spec: {networkPolicy: {dnsCIDRs: [169.254.20.1]}}": `spec.networkPolicy.dnsCIDRs: "169.254.20.1" is not a network`,
	} {
		if got := refusal(t, cloudOf("fast"), spec, v1alpha1.Vanilla); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", spec, want, got)
		}
	}
}
