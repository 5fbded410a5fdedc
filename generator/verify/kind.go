package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "sigs.k8s.io/json"
)

// volumeSnapshotClass is external-snapshotter's VolumeSnapshotClass, snapshot.storage.k8s.io/v1; its module is not worth a
// dependency for four fields.
type volumeSnapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// kinds are all that a bundle may hold, by apiVersion and kind, and whether objects of it live in a namespace.
var kinds = map[string]struct {
	make       func() any
	namespaced bool
}{
	"v1 Namespace":                                    {func() any { return new(corev1.Namespace) }, false},
	"v1 ServiceAccount":                               {func() any { return new(corev1.ServiceAccount) }, true},
	"v1 ConfigMap":                                    {func() any { return new(corev1.ConfigMap) }, true},
	"apps/v1 Deployment":                              {func() any { return new(appsv1.Deployment) }, true},
	"apps/v1 DaemonSet":                               {func() any { return new(appsv1.DaemonSet) }, true},
	"policy/v1 PodDisruptionBudget":                   {func() any { return new(policyv1.PodDisruptionBudget) }, true},
	"networking.k8s.io/v1 NetworkPolicy":              {func() any { return new(networkingv1.NetworkPolicy) }, true},
	"rbac.authorization.k8s.io/v1 Role":               {func() any { return new(rbacv1.Role) }, true},
	"rbac.authorization.k8s.io/v1 RoleBinding":        {func() any { return new(rbacv1.RoleBinding) }, true},
	"rbac.authorization.k8s.io/v1 ClusterRole":        {func() any { return new(rbacv1.ClusterRole) }, false},
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": {func() any { return new(rbacv1.ClusterRoleBinding) }, false},
	"storage.k8s.io/v1 CSIDriver":                     {func() any { return new(storagev1.CSIDriver) }, false},
	"storage.k8s.io/v1 StorageClass":                  {func() any { return new(storagev1.StorageClass) }, false},
	"snapshot.storage.k8s.io/v1 VolumeSnapshotClass":  {func() any { return new(volumeSnapshotClass) }, false},
}

// typed decodes an object into its Kubernetes type as the API server with fieldValidation=Strict does: case matters, unknown and
// repeated fields are errors.
func (o Object) typed() (any, []string) {
	kind, known := kinds[o.APIVersion()+" "+o.Kind()]
	if !known {
		return nil, []string{fmt.Sprintf("kind %s of %q is not one that a bundle may hold", o.Kind(), o.APIVersion())}
	}
	var problems []string
	if o.Name() == "" {
		problems = append(problems, "has no name")
	}
	switch {
	case kind.namespaced && o.Namespace() == "":
		problems = append(problems, "has no namespace, and would be created wherever kubectl happens to point")
	case !kind.namespaced && o.Namespace() != "":
		problems = append(problems, "has a namespace, which its kind does not have")
	}
	text, err := json.Marshal(o.Fields)
	if err != nil {
		return nil, append(problems, err.Error())
	}
	into := kind.make()
	strict, err := utiljson.UnmarshalStrict(text, into)
	if err != nil {
		return nil, append(problems, strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, s := range strict {
		problems = append(problems, s.Error())
	}
	return into, problems
}
