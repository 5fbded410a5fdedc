package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestAHostedClusterIsToldThatHyperShiftFindsVolumesByTheInfrastructureID(t *testing.T) {
	for spec, want := range map[string]bool{
		"metadata: {name: prod}": true,
		"{metadata: {name: prod}, spec: {hypershift: {infraID: prod-x7k2p}}}": false,
		"{metadata: {name: prod}, spec: {clusterID: prod-x7k2p}}":             false,
	} {
		r := decide(t, cloudOf("standard"), spec, v1alpha1.HostedControlPlane)
		told := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "spec.infraID of the HostedCluster") })
		if told != want {
			t.Errorf("%s: want %t, got %q", spec, want, r.Warnings)
		}
	}
}

func TestTwoClusterIDsOfAHostedClusterAreRefused(t *testing.T) {
	d := configured(t, "spec: {clusterID: a, hypershift: {infraID: b}}")
	_, err := Decide(cloudOf("standard"), d, v1alpha1.HostedControlPlane, v1alpha1.Kustomize, "test")
	var wrong *ConfigError
	if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !strings.HasPrefix(wrong.Problems[0], `spec.clusterID: "a" contradicts`) {
		t.Errorf("want one problem of spec.clusterID, got %v", err)
	}
}

func TestTheSecretThatHyperShiftOwnsIsReferenced(t *testing.T) {
	for _, c := range []struct {
		target v1alpha1.Target
		spec   string
		want   Credentials
		warned bool
	}{
		{v1alpha1.Vanilla, "metadata: {name: prod}", Credentials{SecretName: "cinder-csi-credentials"}, false},
		{v1alpha1.HostedControlPlane, "metadata: {name: prod}", Credentials{SecretName: "prod-cloud-credentials", Owner: HyperShift}, true},
		{v1alpha1.HostedControlPlane, "", Credentials{SecretName: "example-cloud-credentials", Owner: HyperShift}, true},
		{v1alpha1.HostedControlPlane, "{metadata: {name: prod}, spec: {hypershift: {platform: OpenStack}}}", Credentials{SecretName: "prod-cloud-credentials", Owner: HyperShift}, false},
		{v1alpha1.HostedControlPlane, "spec: {credentials: {secretName: own}, hypershift: {platform: OpenStack}}", Credentials{SecretName: "own", Owner: HyperShift}, false},
		{v1alpha1.HostedControlPlane, "spec: {credentials: {secretName: own}}", Credentials{SecretName: "own"}, false},
		{v1alpha1.HostedControlPlane, "{metadata: {name: prod}, spec: {hypershift: {platform: KubeVirt}}}", Credentials{SecretName: "cinder-csi-credentials"}, false},
	} {
		r := decide(t, cloudOf("standard"), c.spec, c.target)
		got := r.Credentials.Value
		got.Key, got.Cloud = "", ""
		if got != c.want {
			t.Errorf("%s, %q: want %+v, got %+v", c.target, c.spec, c.want, got)
		}
		warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "spec.hypershift.platform is not set: Secret") })
		if warned != c.warned {
			t.Errorf("%s, %q: want a warning: %t, got %q", c.target, c.spec, c.warned, r.Warnings)
		}
	}
}

// HyperShift gives the servers of a hosted cluster on OpenStack a tag. Without it a strict driver cannot tell them from others of the project.
func TestAStrictDriverOfAHostedClusterServesItsServersOnly(t *testing.T) {
	const hosted = "hypershift: {infraID: prod-x7k2p, platform: OpenStack}"
	tag := map[string]string{"openshiftClusterID": "prod-x7k2p"}
	for spec, test := range map[string]struct {
		target v1alpha1.Target
		want   map[string]string
		warned bool
	}{
		hosted: {target: v1alpha1.HostedControlPlane, want: tag},
		hosted + ", driver: {protectOtherClusters: strict}":  {target: v1alpha1.HostedControlPlane, want: tag},
		hosted + ", driver: {protectOtherClusters: enabled}": {target: v1alpha1.HostedControlPlane, want: map[string]string{}},
		hosted + ", driver: {serverMetadata: {role: node}}":  {target: v1alpha1.HostedControlPlane, want: map[string]string{"role": "node"}},
		"hypershift: {platform: OpenStack}":                  {target: v1alpha1.HostedControlPlane, want: map[string]string{}, warned: true},
		"hypershift: {infraID: a, platform: KubeVirt}":       {target: v1alpha1.HostedControlPlane, want: map[string]string{}, warned: true},
		"hypershift: {infraID: a}":                           {target: v1alpha1.HostedControlPlane, want: map[string]string{}, warned: true},
		hosted + ",":                                         {target: v1alpha1.Vanilla, want: map[string]string{}},
	} {
		r := decide(t, cloudOf("standard"), "{metadata: {name: prod}, spec: {"+spec+"}}", test.target)
		if diff := cmp.Diff(any(test.want), r.Setting(ServerMetadataID).Value.Value); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
		warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "spec.driver.serverMetadata is not set") })
		if warned != test.warned {
			t.Errorf("%s: want a warning: %t, got %q", spec, test.warned, r.Warnings)
		}
	}
}
