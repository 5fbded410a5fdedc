package verify_test

import (
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// stages are the kinds in the order in which they must be applied.
var stages = [][]string{
	{"Namespace"},
	{"CredentialsRequest"},
	{"ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	{"CSIDriver", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service"},
	{"Deployment", "DaemonSet"},
	{"PodMonitor", "ServiceMonitor", "PrometheusRule", "CronJob"},
	{"StorageClass", "VolumeAttributesClass", "VolumeSnapshotClass"},
}

func TestRightsAreAppliedBeforeWorkloadsAndClassesLast(t *testing.T) {
	for name, spec := range specs() {
		for _, target := range targets {
			stage, plane := 0, ""
			for _, o := range build(t, decide(t, spec, clouds["topology on"], target), v1alpha1.Kustomize) {
				if o.Plane != plane {
					stage, plane = 0, o.Plane
				}
				now := slices.IndexFunc(stages, func(kinds []string) bool { return slices.Contains(kinds, o.Kind()) })
				if now < stage {
					t.Errorf("%s, %s: %s comes after the %v of stage %d, or its kind is in no stage", name, target, o, stages[stage], stage)
				}
				stage = max(stage, now)
			}
		}
	}
}
