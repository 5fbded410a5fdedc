package verify_test

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// TestEveryPodSelectsLinuxBesideWhatIsConfigured looks at each workload of both forms.
func TestEveryPodSelectsLinuxBesideWhatIsConfigured(t *testing.T) {
	for name, selector := range map[string]map[string]string{"none": nil, "empty": {}, "one": {"storage": "yes"}} {
		for _, target := range targets {
			spec := v1alpha1.Spec{DriftCheck: v1alpha1.DriftCheck{Schedule: "@daily"}}
			spec.Roles.Controller.NodeSelector, spec.Roles.Node.NodeSelector = selector, selector
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				workloads := 0
				for _, o := range build(t, decide(t, spec, clouds["topology on"], target), format) {
					path := []any{"spec", "template", "spec"}
					switch o.Kind() {
					case "Deployment", "DaemonSet":
					case "CronJob":
						path = []any{"spec", "jobTemplate", "spec", "template", "spec"}
					default:
						continue
					}
					workloads++
					pod := at(t, o.Fields, path...)
					got, _ := pod.(map[string]any)["nodeSelector"].(map[string]any)
					if got["kubernetes.io/os"] != "linux" || len(selector) > 0 && got["storage"] != "yes" {
						t.Errorf("%s %s %s: %s: want Linux and %v, got %v", name, target, format, o, selector, got)
					}
				}
				if workloads != 3 {
					t.Errorf("%s %s %s: want 3 workloads, got %d", name, target, format, workloads)
				}
			}
		}
	}
}
