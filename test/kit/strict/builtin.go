package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // each adds its group to the scheme
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
)

const rbacGroup = "rbac.authorization.k8s.io"

// strategies are what the API server does on a create, for the kinds of bundles and examples.
var strategies = map[schema.GroupKind]rest.RESTCreateStrategy{
	{Group: "apps", Kind: "DaemonSet"}:                       daemonset.Strategy,
	{Group: "apps", Kind: "Deployment"}:                      deployment.Strategy,
	{Group: "apps", Kind: "StatefulSet"}:                     statefulset.Strategy,
	{Group: "batch", Kind: "CronJob"}:                        cronjob.Strategy,
	{Kind: "ConfigMap"}:                                      configmap.Strategy,
	{Kind: "Namespace"}:                                      namespace.Strategy,
	{Kind: "PersistentVolumeClaim"}:                          persistentvolumeclaim.Strategy,
	{Kind: "Pod"}:                                            pod.Strategy,
	{Kind: "Secret"}:                                         secret.Strategy,
	{Kind: "Service"}:                                        service.Strategy,
	{Kind: "ServiceAccount"}:                                 serviceaccount.Strategy,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:      networkpolicy.Strategy,
	{Group: "policy", Kind: "PodDisruptionBudget"}:           poddisruptionbudget.Strategy,
	{Group: rbacGroup, Kind: "ClusterRole"}:                  clusterrole.Strategy,
	{Group: rbacGroup, Kind: "ClusterRoleBinding"}:           clusterrolebinding.Strategy,
	{Group: rbacGroup, Kind: "Role"}:                         role.Strategy,
	{Group: rbacGroup, Kind: "RoleBinding"}:                  rolebinding.Strategy,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             csidriver.Strategy,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:          storageclass.Strategy,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: volumeattributesclass.Strategy,
}

// builtIn creates an object of Kubernetes itself.
func builtIn(text []byte, namespace string) error {
	strict := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	// To the internal version, with defaults: what the API server does with the body of a request.
	object, kind, err := strict.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return err
	}
	strategy, known := strategies[kind.GroupKind()]
	if !known {
		return fmt.Errorf("%s is not checked: add its strategy to test/kit/strict", kind)
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	if err := place(metadata, strategy.NamespaceScoped(), namespace); err != nil {
		return err
	}
	ctx := request.WithNamespace(context.Background(), metadata.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	rest.FillObjectMetaSystemFields(metadata)
	if s, is := object.(*core.Service); is && s.Spec.ClusterIP == core.ClusterIPNone {
		s.Spec.ClusterIPs = []string{core.ClusterIPNone} // the API server fills it before it validates, where it allocates addresses
	}
	return rest.BeforeCreate(strategy, ctx, object)
}
