package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// decideStandalone decides for a stand-alone cluster.
func decideStandalone(t *testing.T, spec string) Result {
	t.Helper()
	r, err := Decide(cloudOf("standard"), configured(t, "metadata: {name: prod}\nspec: {"+spec+"}"), v1alpha1.Standalone, v1alpha1.Kustomize, "test")
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return r
}

func TestTheControlPlanesTopologyDecidesReplicasAndNodes(t *testing.T) {
	selected := map[string]string{controlPlaneLabel: ""}
	for topology, want := range map[string]struct {
		replicas int
		selector map[string]string
	}{
		"":                                {2, selected},
		v1alpha1.SingleReplica:            {1, selected},
		v1alpha1.HighlyAvailable:          {2, selected},
		v1alpha1.HighlyAvailableArbiter:   {2, selected},
		v1alpha1.DualReplica:              {2, selected},
		v1alpha1.External:                 {2, nil},
		"SingleReplica, with replicas: 3": {3, selected},
	} {
		topology, given, _ := strings.Cut(topology, ", with ")
		spec := "openshift: {controlPlaneTopology: '" + topology + "'}, roles: {controller: {" + given + "}}"
		w := decideStandalone(t, spec).Controller
		if w.Replicas.Value != want.replicas || !maps.Equal(w.NodeSelector.Value, want.selector) {
			t.Errorf("%s: want %d replicas on %v, got %d on %v", spec, want.replicas, want.selector, w.Replicas.Value, w.NodeSelector.Value)
		}
	}
}

// Two drivers on one node share its slots, and each knows only its own volumes.
func TestAComputedAttachLimitBesideTheBuiltInDriverIsAWarning(t *testing.T) {
	for spec, want := range map[string]bool{
		"openshift: {coexistence: sideBySide}":                          true,
		"openshift: {coexistence: sideBySide}, volumeAttachLimit: auto": true,
		"openshift: {coexistence: sideBySide}, volumeAttachLimit: '20'": false,
		"openshift: {coexistence: adopt}":                               false,
	} {
		told := slices.ContainsFunc(decideStandalone(t, spec).Warnings, func(w string) bool { return strings.Contains(w, "both use the same slots of a server") })
		if told != want {
			t.Errorf("%s: want the warning %t, got %t", spec, want, told)
		}
	}
}

func TestNoProxyHasTheMetadataServiceAndTheClustersNetworks(t *testing.T) {
	const proxy = "roles: {controller: {proxy: {https: 'http://proxy.example:3128', noProxy: 'example.org, .svc'}}, node: {proxy: {noProxy: a.example}}}"
	r := decideStandalone(t, "openshift: {clusterNetworks: [10.128.0.0/14, 172.30.0.0/16]}, "+proxy)
	const want = "example.org,.svc,169.254.169.254,localhost,127.0.0.1,.cluster.local,10.128.0.0/14,172.30.0.0/16"
	if got := r.Controller.Proxy.Value.NoProxy; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	if got := r.Node.Proxy.Value.NoProxy; got != "a.example" { // without a proxy there is nothing to complete
		t.Errorf("node: got %s", got)
	}
}

func TestACredentialsRequestAsksForTheSecretUnlessItIsYours(t *testing.T) {
	for spec, want := range map[string]bool{
		"":                                                  true,
		"credentials: {request: auto}":                      true,
		"credentials: {request: disabled}":                  false,
		"credentials: {secretName: mine}":                   false,
		"credentials: {cloud: prod}":                        false,
		"credentials: {key: other.yaml}":                    false,
		"credentials: {secretName: mine, request: enabled}": true,
	} {
		r := decideStandalone(t, spec)
		if r.CredentialsRequest.Value != want || (r.Credentials.Value.Owner == CredentialOperator) != want || r.CredentialsRequest.Reason == "" {
			t.Errorf("%s: want %t, got %t of owner %q: %s", spec, want, r.CredentialsRequest.Value, r.Credentials.Value.Owner, r.CredentialsRequest.Reason)
		}
	}
}

func TestMetricsOfAServiceMonitorAreServedOverTLS(t *testing.T) {
	for spec, want := range map[string]struct {
		tls      MetricsTLS
		platform bool
	}{
		"":                                   {MetricsTLS{}, false},
		"monitoring: {kind: PodMonitor}":     {MetricsTLS{}, true},
		"monitoring: {kind: ServiceMonitor}": {MetricsTLS{true, "VersionTLS12", intermediate}, true},
		"monitoring: {kind: ServiceMonitor, tls: {minVersion: VersionTLS13, cipherSuites: [TLS_AES_128_GCM_SHA256]}}, openshift: {monitoring: userWorkload}": {
			MetricsTLS{true, "VersionTLS13", "TLS_AES_128_GCM_SHA256"}, false,
		},
	} {
		r := decideStandalone(t, spec)
		if diff := cmp.Diff(want.tls, r.MetricsTLS.Value); diff != "" || r.PlatformMonitoring.Value != want.platform {
			t.Errorf("%s: platform %t, want %t; TLS -want +got\n%s", spec, r.PlatformMonitoring.Value, want.platform, diff)
		}
		_, proxied := r.Images[rbacProxy]
		if proxied != want.tls.Enabled {
			t.Errorf("%s: the image of kube-rbac-proxy is decided: %t", spec, proxied)
		}
	}
}

func TestSettingsOfAnotherTargetAreRefused(t *testing.T) {
	for _, c := range []struct {
		target     v1alpha1.Target
		spec, want string
	}{
		{v1alpha1.Vanilla, "openshift: {controlPlaneTopology: External}", "spec.openshift.controlPlaneTopology"},
		{v1alpha1.Vanilla, "openshift: {monitoring: platform}", "spec.openshift.monitoring"},
		{v1alpha1.Vanilla, "monitoring: {tls: {minVersion: VersionTLS13}}", "spec.monitoring.tls"},
		{v1alpha1.Vanilla, "openshift: {clusterNetworks: [10.0.0.0/8]}", "spec.openshift.clusterNetworks"},
		{v1alpha1.Standalone, "openshift: {clusterNetworks: [10.0.0.1/8]}", "spec.openshift.clusterNetworks"},
		{v1alpha1.Standalone, "monitoring: {tls: {cipherSuites: [AES]}}", "spec.monitoring.tls.cipherSuites[0]"},
		{v1alpha1.Vanilla, "credentials: {request: enabled}", "spec.credentials.request"},
		{v1alpha1.Standalone, "credentials: {request: enabled, cloud: prod}", "spec.credentials.request"},
		{v1alpha1.Standalone, "roles: {controller: {runAsUser: 65532}}", "spec.roles.controller.runAsUser"},
		{v1alpha1.Standalone, "roles: {controller: {runAsUser: 1000680000}}", "spec.roles.controller.runAsUser"},
	} {
		_, err := Decide(cloudOf("standard"), configured(t, "spec: {"+c.spec+"}"), c.target, v1alpha1.Helm, "test")
		var wrong *ConfigError
		if !errors.As(err, &wrong) || !slices.ContainsFunc(wrong.Problems, func(p string) bool { return strings.HasPrefix(p, c.want+":") }) {
			t.Errorf("%s %s: want a problem of %s, got %v", c.target, c.spec, c.want, err)
		}
	}
}

func TestAnImageOfKubeRBACProxyWithoutEffectIsNamed(t *testing.T) {
	r := decideStandalone(t, "images: {rbacproxy: {tag: v9}}")
	if !strings.Contains(fmt.Sprint(r.Warnings), "spec.images.rbacproxy has no effect") {
		t.Errorf("got %q", r.Warnings)
	}
}

func TestTwoDriversOnOneNodeAreWarnedOf(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]bool{
		"{}": true, "{volumeAttachLimit: auto}": true, "{volumeAttachLimit: 20}": false, "{openshift: {coexistence: adopt}}": false,
	} {
		for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone} {
			if target == v1alpha1.Vanilla && strings.Contains(spec, "openshift") {
				continue
			}
			warnings := decide(t, cloudOf("standard"), "spec: "+spec, target).Warnings
			warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "volumeAttachLimit is auto") })
			if want := want && target == v1alpha1.Standalone; warned != want {
				t.Errorf("%s %s: want a warning: %t, got %q", target, spec, want, warnings)
			}
		}
	}
}

// In these namespaces OpenShift chooses no user, and a pod keeps the one of its image.
func TestOnOpenShiftNoRoleIsInANamespaceWithoutSecurityContextConstraints(t *testing.T) {
	t.Parallel()
	for _, name := range append(slices.Clone(Unconstrained), "storage", "openshift-storage", "kube-node-lease") {
		for target, constrained := range map[v1alpha1.Target]bool{v1alpha1.Vanilla: false, v1alpha1.Standalone: true, v1alpha1.HostedControlPlane: true} {
			for _, role := range []string{"controller", "node"} {
				_, err := Decide(cloudOf("standard"), configured(t, "metadata: {name: prod}\nspec: {namespaces: {"+role+": "+name+"}}"), target, v1alpha1.Helm, "test")
				refused := err != nil && strings.Contains(err.Error(), "spec.namespaces."+role+": OpenShift applies no security context constraint in "+name)
				if want := constrained && slices.Contains(Unconstrained, name); want != refused {
					t.Errorf("%s, %s in %s: want a refusal %t, got %v", target, role, name, want, err)
				}
			}
		}
	}
}

func TestKeysThatOpenShiftDoesNotHonourAreWarnedOf(t *testing.T) {
	t.Parallel()
	for spec, targets := range map[string][]v1alpha1.Target{
		"driver: {kubeletDir: /var/lib/k0s/kubelet}":                                        {v1alpha1.Standalone, v1alpha1.HostedControlPlane},
		"driver: {kubeletDir: /var/lib/kubelet}":                                            nil,
		"nodePools: [{name: gpu, nodeSelector: {pool: gpu}, kubeletDir: /var/lib/kubelet}]": nil,
		"nodePools: [{name: gpu, nodeSelector: {pool: gpu}, kubeletDir: /opt/kubelet}]":     {v1alpha1.Standalone, v1alpha1.HostedControlPlane},
		"roles: {controller: {runAsUser: 1001}}":                                            {v1alpha1.HostedControlPlane},
	} {
		for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
			r, err := Decide(cloudOf("standard"), configured(t, "metadata: {name: prod}\nspec: {"+spec+"}"), target, v1alpha1.Helm, "test")
			if target == v1alpha1.Standalone && strings.Contains(spec, "runAsUser") {
				continue // refused
			}
			if err != nil {
				t.Fatalf("%s %s: %v", target, spec, err)
			}
			warned := slices.ContainsFunc(r.Warnings, func(w string) bool {
				return strings.Contains(w, "the kubelet of OpenShift uses /var/lib/kubelet") || strings.Contains(w, "OpenShift refuses a pod whose user is not in the range of namespace")
			})
			if want := slices.Contains(targets, target); warned != want {
				t.Errorf("%s %s: want a warning %t, got %q", target, spec, want, r.Warnings)
			}
		}
	}
}
