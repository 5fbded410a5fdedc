package bundle_test

import (
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// readAsOther are texts that YAML reads as something else where a template does not quote them.
var readAsOther = []string{"1e3", "null", `a: b #x "q' {{ 1 }}`, "a\nb: c"}

// Both formats come from the templates, so nothing else shows a template that does not quote. Every text that the chart takes arrives as that text.
func TestEveryTextOfTheValuesArrivesAsThatText(t *testing.T) {
	limit := 20
	spec := v1alpha1.Spec{
		DriftCheck: v1alpha1.DriftCheck{Schedule: "@daily"}, KubernetesVersion: "1.36",
		Monitoring:        v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor, Alerts: true, RunbookBase: "https://x.example", Labels: map[string]string{"release": "x"}},
		AttributesClasses: map[string]v1alpha1.AttributesClass{"gold": {Type: "standard"}},
		NodePools:         []v1alpha1.NodePool{{Name: "gpu", NodeSelector: map[string]string{"pool": "gpu"}, VolumeAttachLimit: &limit}},
		Snapshots:         v1alpha1.Snapshots{Classes: map[string]v1alpha1.SnapshotClass{"weekly": {Parameters: map[string]string{"type": "backup"}, Annotations: map[string]string{"a": "b"}}}},
		Roles: v1alpha1.Roles{Controller: v1alpha1.RolePods{
			Env: map[string]string{"A": "b"}, PodLabels: map[string]string{"team": "x"}, PodAnnotations: map[string]string{"a": "b"}, ImagePullSecrets: []string{"pull"},
			NodeSelector: map[string]string{"role": "x"}, Proxy: v1alpha1.Proxy{HTTP: "http://p", HTTPS: "http://p", NoProxy: "x"},
			Tolerations: []v1alpha1.Toleration{{Key: "k", Operator: "Equal", Value: "v"}}, Resources: map[string]v1alpha1.Resources{"driver": {Limits: map[string]string{"memory": "1Gi"}}},
		}},
	}
	taken, refused := 0, 0
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.HostedControlPlane} {
		r := result(t, target, v1alpha1.Kustomize, spec)
		found, err := bundle.Hostile(r, verify.Chart, readAsOther, &taken, &refused)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		for _, f := range slices.Compact(found) {
			t.Errorf("%s: %s", target, f)
		}
	}
	t.Logf("%d texts were taken, %d refused", taken, refused)
}

// Explanations render only the templates that name a value. The two planes have the most templates; with -full, all targets.
func TestATemplateNamesEveryValueThatChangesIt(t *testing.T) {
	testenv.NotShort(t)
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		if target != v1alpha1.HostedControlPlane && !testenv.Full() {
			continue
		}
		found, err := bundle.Unnamed(result(t, target, v1alpha1.Kustomize, v1alpha1.Spec{
			DriftCheck: v1alpha1.DriftCheck{Schedule: "@daily"}, NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true, MetricsNamespaces: []string{"monitoring"}},
			Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor, Alerts: true, Dashboards: true},
		}), verify.Chart)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s: %s", target, f)
		}
	}
}
