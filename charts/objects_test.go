package charts_test

import (
	"fmt"
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

// The API server drops fields with their zero value and rewrites quantities. What Argo CD compares must not differ for ever from what it applied.
func TestKubernetesKeepsEachFieldAsItIsWritten(t *testing.T) {
	for _, values := range []map[string]any{nil, everyValue(t)} {
		for id, o := range objects(t, values) {
			object, known := types[o.Kind()]
			if !known {
				continue
			}
			text, err := yaml.Marshal(o.Fields)
			if err != nil {
				t.Fatal(err)
			}
			typed := object()
			if err := yaml.Unmarshal(text, typed); err != nil {
				t.Fatal(err)
			}
			text, err = yaml.Marshal(typed)
			if err != nil {
				t.Fatal(err)
			}
			var kept any
			if err := yaml.Unmarshal(text, &kept); err != nil {
				t.Fatal(err)
			}
			dropped(t, id, "", o.Fields, kept)
		}
	}
}

// dropped reports each value of a document that another one does not have.
func dropped(t *testing.T, id, path string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, value := range w {
			if _, there := g[key]; !there {
				t.Errorf("%s: Kubernetes does not keep %s.%s: %v", id, path, key, value)
				continue
			}
			dropped(t, id, path+"."+key, value, g[key])
		}
	case []any:
		g, _ := got.([]any)
		for i, value := range w {
			if i < len(g) {
				dropped(t, id, fmt.Sprintf("%s[%d]", path, i), value, g[i])
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: Kubernetes keeps %d of %d elements of %s", id, len(g), len(w), path)
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%s: Kubernetes writes %s as %v, and the chart as %v", id, path, got, want)
		}
	}
}
