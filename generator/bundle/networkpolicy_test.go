package bundle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// OpenShift's DNS pods listen on 5353. A management cluster may be OpenShift or not, and without DNS the controller reaches no cloud.
func TestTheNetworkPolicyOpensDNSWhereTheClusterServesIt(t *testing.T) {
	for target, want := range map[v1alpha1.Target][]string{
		v1alpha1.Vanilla:            {"TCP 53", "UDP 53"},
		v1alpha1.Standalone:         {"TCP 5353", "UDP 5353"},
		v1alpha1.HostedControlPlane: {"TCP 53", "TCP 5353", "UDP 53", "UDP 5353"},
	} {
		tree := render(t, result(t, target, v1alpha1.Kustomize, v1alpha1.Spec{NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true}}), bundle.Options{})
		var got []string
		for _, rule := range networkPolicy(t, tree).Spec.Egress {
			for _, p := range rule.Ports {
				if strings.HasSuffix(p.Port.String(), "53") {
					got = append(got, fmt.Sprint(*p.Protocol, " ", p.Port))
				}
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// networkPolicy is the only one in a bundle.
func networkPolicy(t *testing.T, tree bundle.Tree) networkingv1.NetworkPolicy {
	t.Helper()
	var found []networkingv1.NetworkPolicy
	for name, content := range tree {
		for text := range strings.SplitSeq(string(content), "\n---\n") {
			var p networkingv1.NetworkPolicy
			if strings.HasSuffix(name, ".yaml") && strings.Contains(text, "kind: NetworkPolicy\n") && yaml.Unmarshal([]byte(text), &p) == nil && p.Kind == "NetworkPolicy" {
				found = append(found, p)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one NetworkPolicy in the bundle, got %d", len(found))
	}
	return found[0]
}
