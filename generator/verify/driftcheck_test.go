package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinder-csi/cinder-csi/generator/guard"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// TestTheDriftCheckOfANewBundleFindsNothing reads the configuration and the decisions that the CronJob gets, and decides
// again. Whatever metadata.name was, only a change of the cloud may be a difference.
func TestTheDriftCheckOfANewBundleFindsNothing(t *testing.T) {
	for name, spec := range specs() {
		spec.DriftCheck.Schedule = "@daily"
		for cloud, inventory := range clouds {
			for _, target := range targets {
				for _, cluster := range []string{"", "prod"} {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", name, cloud, target, cluster), func(t *testing.T) {
						config, decisions := driftCheckFiles(t, v1alpha1.Distribution{Metadata: v1alpha1.Metadata{Name: cluster}, Spec: forTarget(spec, target)}, inventory, target)
						r, err := plan.Decide(inventory, config, target, decisions.Format, decisions.Generator)
						if err != nil {
							t.Fatal(err)
						}
						changes := slices.DeleteFunc(guard.Compare(decisions, r.Document(nil), guard.Run{}), func(c v1alpha1.Change) bool {
							return c.Field == "warnings" // the plan of a drift check has none
						})
						if diff := cmp.Diff([]v1alpha1.Change{}, changes, cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("(-want +got):\n%s", diff)
						}
					})
				}
			}
		}
	}
}

// driftCheckFiles are what the ConfigMap of a bundle holds. Both formats must have the same.
func driftCheckFiles(t *testing.T, d v1alpha1.Distribution, inventory v1alpha1.Inventory, target v1alpha1.Target) (v1alpha1.Distribution, v1alpha1.Plan) {
	t.Helper()
	r, err := plan.Decide(inventory, d, target, v1alpha1.Kustomize, "v0.0.0-test")
	if err != nil {
		t.Fatal(err)
	}
	config, decisions, err := r.DriftCheckFiles()
	if err != nil {
		t.Fatal(err)
	}
	distribution, err := v1alpha1.DecodeDistribution("distribution.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	p, err := v1alpha1.DecodePlan("plan.yaml", []byte(decisions))
	if err != nil {
		t.Fatal(err)
	}
	return distribution, p
}

// TestTheDriftCheckRunsWhereTheControllerCan: a pod that finds no node, or a cloud that did not answer once, would be reported as drift.
func TestTheDriftCheckRunsWhereTheControllerCan(t *testing.T) {
	spec := specs()["everything"]
	spec.Roles.Controller.RunAsUser = new(int64(4711))
	for _, target := range targets {
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			var job, pod, controller map[string]any
			for _, o := range build(t, decide(t, spec, clouds["topology on"], target), format) {
				switch o.Kind() {
				case "CronJob":
					job = at(t, o.Fields, "spec", "jobTemplate", "spec").(map[string]any)
					pod = at(t, job, "template", "spec").(map[string]any)
				case "Deployment":
					controller = at(t, o.Fields, "spec", "template", "spec").(map[string]any)
				}
			}
			for _, key := range []string{"nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets", "securityContext"} {
				if diff := cmp.Diff(controller[key], pod[key]); diff != "" {
					t.Errorf("%s %s: %s (-controller +drift check):\n%s", target, format, key, diff)
				}
			}
			if target == v1alpha1.HostedControlPlane {
				at(t, job, "template", "metadata", "labels", "hypershift.openshift.io/hosted-control-plane")
				at(t, pod, "affinity", "nodeAffinity")
				at(t, job, "template", "metadata", "labels", "hypershift.openshift.io/need-management-kas-access") // to write its result
			}
			if got := fmt.Sprint(job["backoffLimit"], at(t, job, "podFailurePolicy", "rules", 0, "onExitCodes", "values")); got != "3 [2 64]" {
				t.Errorf("%s %s: want three more attempts, and none after drift, got %s", target, format, got)
			}
		}
	}
}
