package charts_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// types are the Go types of the objects that the chart writes.
var types = map[string]func() any{
	"ServiceAccount":      func() any { return new(corev1.ServiceAccount) },
	"Secret":              func() any { return new(corev1.Secret) },
	"ConfigMap":           func() any { return new(corev1.ConfigMap) },
	"Pod":                 func() any { return new(corev1.Pod) },
	"Deployment":          func() any { return new(appsv1.Deployment) },
	"DaemonSet":           func() any { return new(appsv1.DaemonSet) },
	"PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
	"NetworkPolicy":       func() any { return new(networkingv1.NetworkPolicy) },
	"ClusterRole":         func() any { return new(rbacv1.ClusterRole) },
	"ClusterRoleBinding":  func() any { return new(rbacv1.ClusterRoleBinding) },
	"Role":                func() any { return new(rbacv1.Role) },
	"RoleBinding":         func() any { return new(rbacv1.RoleBinding) },
	"CSIDriver":           func() any { return new(storagev1.CSIDriver) },
	"StorageClass":        func() any { return new(storagev1.StorageClass) },
	"Service":             func() any { return new(corev1.Service) },
	"CronJob":             func() any { return new(batchv1.CronJob) },

	"VolumeAttributesClass": func() any { return new(storagev1.VolumeAttributesClass) },
}

// Helm accepts a field in the wrong place, and Kubernetes then ignores it.
func TestKubernetesKnowsEachFieldOfEveryObject(t *testing.T) {
	for _, target := range []string{"vanilla", "standalone"} {
		values := set(everyValue(t), "target", target)
		if target == "standalone" {
			for _, leaf := range standaloneLeaves {
				values = set(values, leaf, true)
			}
		}
		for id, o := range objects(t, values) {
			object, known := types[o.Kind()]
			if !known {
				if !slices.Contains([]string{"VolumeSnapshotClass", "PodMonitor", "ServiceMonitor", "PrometheusRule", "CredentialsRequest"}, o.Kind()) { // custom resources
					t.Errorf("%s: add the type of %s to this test", target, id)
				}
				continue
			}
			text, err := yaml.Marshal(o.Fields)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, object()); err != nil {
				t.Errorf("%s: %s: %v", target, id, err)
			}
		}
	}
}
