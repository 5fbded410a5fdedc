package cli

import (
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// origin says what the value of a field follows from: decisions, or a key of the configuration that is emitted as it is, or
// neither: then it is the same in every bundle for the target.
type origin struct {
	at     string // as field.within reads it
	ids    []string
	config string
}

// origins are those of one object's fields; of several that fit a field the first counts, and what none fits is nobody's decision.
// A test holds them to what differs between bundles.
func origins(o verify.Object, p v1alpha1.Plan) []origin {
	namespace := namespaceID(o, p.Target)
	list := []origin{{at: "metadata namespace", ids: []string{namespace}}, {at: "subjects * namespace", ids: []string{namespace}}}
	switch o.Kind() {
	case "Namespace":
		return append(list, namespaceOrigins(o, p)...)
	case "StorageClass":
		return append(list, classOrigins(plan.ClassID+o.Name())...)
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		if slices.Contains([]string{"cinder-csi-snapshotter", "cinder-csi-snapshotter-lease", "cinder-csi-provisioner-snapshots"}, o.Name()) {
			list = append(list, origin{at: "metadata name", ids: []string{plan.IDSnapshotClass}})
		}
		return list
	case "ConfigMap":
		return append(list, configMaps(p.Target)[o.Name()]...)
	case "Deployment":
		return append(list, podOrigins(plan.IDController, p.Config.Planes.Controller, p)...)
	case "DaemonSet":
		return append(list, podOrigins(plan.IDNode, p.Config.Planes.Node, p)...)
	}
	return append(list, singles[o.Kind()]...)
}

// singles are the origins in kinds of which a plane has one object.
var singles = map[string][]origin{
	"CSIDriver": {
		{at: "metadata name", ids: []string{plan.IDDriverName}},
		{at: "spec nodeAllocatableUpdatePeriodSeconds", ids: []string{plan.IDLimitRefresh}},
	},
	"VolumeSnapshotClass": {
		{at: "metadata name", ids: []string{plan.IDSnapshotClass}},
		{at: "metadata annotations snapshot.storage.kubernetes.io/is-default-class", ids: []string{plan.IDDriverName}}, // not where the name is taken over
		{at: "driver", ids: []string{plan.IDDriverName}},
		{at: "parameters", ids: []string{plan.IDSnapshotClass}},
	},
	"NetworkPolicy": {
		{at: "metadata name", ids: []string{plan.IDNetworkPolicy}},
		{at: "spec ingress * ports [4]", ids: []string{plan.IDSnapshotClass}}, // the snapshotter's
		{at: "spec ingress", ids: []string{plan.IDNetworkPolicy}},
		{at: "spec egress [1] to", ids: []string{plan.IDNetworkPolicy}}, // the API server
		{at: "spec egress [2]", ids: []string{plan.IDNetworkPolicy}},    // OpenStack; the first is DNS
	},
}

// namespaceID is the decision on where an object is. In a guest everything is beside the node.
func namespaceID(o verify.Object, target v1alpha1.Target) string {
	metadata, _ := o.Fields["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels["app.kubernetes.io/component"] == "node" || target == v1alpha1.HostedControlPlane && o.Plane == "guest" {
		return plan.IDNodeNamespace
	}
	return plan.IDControllerNamespace
}

// namespaceOrigins: a Namespace is there, and restricted or privileged, for the roles that live in it.
func namespaceOrigins(o verify.Object, p v1alpha1.Plan) []origin {
	var ids []string
	for _, id := range []string{plan.IDControllerNamespace, plan.IDNodeNamespace} {
		if d, found := plan.DecisionOf(p, id); found && d.Value == o.Name() {
			ids = append(ids, id)
		}
	}
	list := []origin{{at: "metadata name", ids: ids}}
	for _, mode := range []string{"audit", "enforce", "warn"} {
		list = append(list, origin{at: "metadata labels pod-security.kubernetes.io/" + mode, ids: ids})
	}
	return list
}

func classOrigins(class string) []origin {
	ids := []string{class}
	return []origin{
		{at: "metadata name", ids: ids},
		{at: "metadata annotations argocd.argoproj.io/sync-options"},
		{at: "metadata annotations helm.sh/resource-policy"},
		{at: "metadata annotations storageclass.kubernetes.io/is-default-class", ids: []string{plan.IDDefaultClass}},
		{at: "metadata annotations", ids: ids},
		{at: "provisioner", ids: []string{plan.IDDriverName}},
		{at: "reclaimPolicy", ids: ids},
		{at: "volumeBindingMode", ids: ids},
		{at: "allowVolumeExpansion", ids: ids},
		{at: "parameters", ids: ids},
		{at: "mountOptions", ids: ids},
		{at: "allowedTopologies * matchLabelExpressions * key", ids: []string{plan.IDTopologyKey}},
		{at: "allowedTopologies", ids: []string{class, plan.IDTopology}},
	}
}

func configMaps(target v1alpha1.Target) map[string][]origin {
	leases := plan.IDControllerNamespace
	if target == v1alpha1.HostedControlPlane {
		leases = plan.IDNodeNamespace
	}
	node := []origin{
		{at: "data DRIVER_NAME", ids: []string{plan.IDDriverName}},
		{at: "data ENABLE_TOPOLOGY", ids: []string{plan.IDTopology}},
		{at: "data LOG_LEVEL", ids: []string{plan.IDLogLevel}},
	}
	return map[string][]origin{
		"cinder-csi-node-settings": node,
		"cinder-csi-controller-settings": append(slices.Clone(node),
			origin{at: "data PVC_ANNOTATIONS", ids: []string{plan.IDPVCAnnotations}},
			origin{at: "data CLUSTER_ID", ids: []string{plan.IDClusterID}},
			origin{at: "data LEASE_NAMESPACE", ids: []string{leases}}),
		"cinder-csi-node-config":       {{at: "data cloud.conf", ids: []string{plan.IDAttachLimit}}},
		"cinder-csi-controller-config": {{at: "data cloud.conf", ids: []string{plan.IDCloudConf, plan.IDZoneMap}}},
		"cinder-csi-ca":                {{at: "metadata name", ids: []string{plan.IDCredentials}}, {at: "data ca.pem", ids: []string{plan.IDCredentials}}},
	}
}

// podOrigins are those of a role's Deployment or DaemonSet; id is the decision on how its pods run.
func podOrigins(id string, given v1alpha1.Plane, p v1alpha1.Plan) []origin {
	const pod, containers = "spec template spec ", "spec template spec containers "
	var list []origin
	add := func(at string, ids ...string) { list = append(list, origin{at: at, ids: ids}) }
	add("spec replicas", id)
	for _, name := range []string{"app", "app.kubernetes.io/name", "app.kubernetes.io/component", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
		add("spec template metadata labels " + name)
	}
	add("spec template metadata labels", id)
	for _, key := range []string{"priorityClassName", "tolerations", "nodeSelector", "imagePullSecrets"} {
		add(pod+key, id)
	}
	for name := range p.Config.Images {
		add(containers+"["+name+"] image", id)
	}
	for name := range given.Images {
		add(containers+"["+name+"] image", id)
	}
	for name, r := range given.Resources {
		for resource := range r.Requests {
			add(containers+"["+name+"] resources requests "+resource, id)
		}
		for resource := range r.Limits {
			add(containers+"["+name+"] resources limits "+resource, id)
		}
	}
	for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		add(containers+"[driver] env ["+variable+"]", id)
	}
	if id == plan.IDNode {
		add(pod+"volumes [plugin-dir] hostPath path", plan.IDDriverName)
		add(configHash, plan.IDDriverName, plan.IDTopology, plan.IDLogLevel, plan.IDAttachLimit)
		return list
	}
	return append(list, controllerOrigins(pod, containers)...)
}

// configHash is the annotation that replaces pods when what they read at their start changes.
const configHash = "spec template metadata annotations cinder-csi.io/config-hash"

func controllerOrigins(pod, containers string) []origin {
	const affinity, preferred = "affinity ", "preferredDuringSchedulingIgnoredDuringExecution "
	controller, credentials := []string{plan.IDController}, []string{plan.IDCredentials}
	return []origin{
		{at: pod + "securityContext runAsUser", ids: controller},
		{at: pod + "securityContext runAsGroup", ids: controller},
		{at: pod + "securityContext fsGroup", ids: controller},
		{at: containers + "[snapshotter]", ids: []string{plan.IDSnapshotClass}},
		{at: containers + "[driver] volumeMounts [ca]", ids: credentials},
		{at: pod + "volumes [ca]", ids: credentials},
		{at: containers + "[driver] volumeMounts [api-access]", ids: []string{plan.IDPVCAnnotations}},
		{at: pod + "volumes [cloud] secret secretName", ids: credentials},
		{at: pod + "volumes [cloud] secret items * key", ids: credentials},
		{at: pod + "volumes [hosted-kubeconfig] secret secretName", config: "spec.hypershift.kubeconfigSecret"},
		{at: pod + affinity + "nodeAffinity " + preferred + "[1] preference matchExpressions * values", ids: []string{plan.IDControllerNamespace}},
		{at: pod + affinity + "podAffinity " + preferred + "* podAffinityTerm labelSelector", ids: []string{plan.IDControllerNamespace}},
		{at: configHash, ids: []string{plan.IDDriverName, plan.IDTopology, plan.IDLogLevel, plan.IDPVCAnnotations, plan.IDClusterID, plan.IDControllerNamespace, plan.IDNodeNamespace, plan.IDCloudConf, plan.IDZoneMap, plan.IDCredentials}},
	}
}
