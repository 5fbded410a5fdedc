package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
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

// monitor is a PodMonitor or ServiceMonitor of the Prometheus operator, monitoring.coreos.com/v1, with the fields that a bundle has.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port string `json:"port"`
		} `json:"podMetricsEndpoints,omitempty"`
		Endpoints []struct {
			Port          string `json:"port"`
			Path          string `json:"path,omitempty"`
			Scheme        string `json:"scheme,omitempty"`
			Interval      string `json:"interval,omitempty"`
			Authorization *struct {
				Type        string                   `json:"type,omitempty"`
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization,omitempty"`
			TLSConfig *struct {
				CA struct {
					ConfigMap corev1.ConfigMapKeySelector `json:"configMap"`
				} `json:"ca"`
				ServerName string `json:"serverName,omitempty"`
			} `json:"tlsConfig,omitempty"`
		} `json:"endpoints,omitempty"`
	} `json:"spec"`
}

// credentialsRequest is a CredentialsRequest of OpenShift's Cloud Credential Operator, cloudcredential.openshift.io/v1, with the fields that a
// bundle has.
type credentialsRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		SecretRef struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"secretRef"`
		ProviderSpec metav1.TypeMeta `json:"providerSpec"`
	} `json:"spec"`
}

// prometheusRule is a PrometheusRule of the Prometheus operator with the fields that a bundle has.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for,omitempty"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// kinds are all that a bundle may hold, by apiVersion and kind, and whether objects of it live in a namespace.
var kinds = map[string]struct {
	make       func() any
	namespaced bool
}{
	"v1 Namespace":      {func() any { return new(corev1.Namespace) }, false},
	"v1 ServiceAccount": {func() any { return new(corev1.ServiceAccount) }, true},
	"v1 Secret":         {func() any { return new(corev1.Secret) }, true},
	"cloudcredential.openshift.io/v1 CredentialsRequest": {func() any { return new(credentialsRequest) }, true},
	"v1 ConfigMap":                                    {func() any { return new(corev1.ConfigMap) }, true},
	"v1 Service":                                      {func() any { return new(corev1.Service) }, true},
	"batch/v1 CronJob":                                {func() any { return new(batchv1.CronJob) }, true},
	"monitoring.coreos.com/v1 PodMonitor":             {func() any { return new(monitor) }, true},
	"monitoring.coreos.com/v1 ServiceMonitor":         {func() any { return new(monitor) }, true},
	"monitoring.coreos.com/v1 PrometheusRule":         {func() any { return new(prometheusRule) }, true},
	"storage.k8s.io/v1 VolumeAttributesClass":         {func() any { return new(storagev1.VolumeAttributesClass) }, false},
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

// Kinds are the kinds of objects that a bundle may hold, in lower case and sorted.
func Kinds() []string {
	var names []string
	for key := range kinds {
		_, kind, _ := strings.Cut(key, " ")
		names = append(names, strings.ToLower(kind))
	}
	slices.Sort(names)
	return names
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
