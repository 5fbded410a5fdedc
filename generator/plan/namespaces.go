package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The default namespaces. Each role has its own, because Pod Security labels belong to a namespace: restricted for the controller,
// privileged for the node. The Secret with the credentials is in the namespace of the controller only.
const (
	controllerNamespace = "cinder-csi"
	nodeNamespace       = "cinder-csi-node"
	guestNamespace      = "cinder-csi"
)

// UnnamedCluster is the cluster's name in the Cinder metadata of upstream's manifests.
const UnnamedCluster = "kubernetes"

func (d *decider) namespaces() (controller, node Decision[string]) {
	given := d.given.Namespaces
	d.checkNamespace("spec.namespaces.controller", given.Controller)
	d.checkNamespace("spec.namespaces.node", given.Node)
	controller = configuredAs(given.Controller, given.Controller != "", "spec.namespaces.controller")
	node = configuredAs(given.Node, given.Node != "", "spec.namespaces.node")
	if d.target == v1alpha1.HostedControlPlane {
		d.hostedNamespaces(&controller, &node)
		return controller, node
	}
	orElse(&controller, controllerNamespace, "controller and nodes have separate namespaces; this one is restricted and holds the credentials")
	orElse(&node, nodeNamespace, "controller and nodes have separate namespaces; this one is privileged and holds no credentials")
	if controller.Value == node.Value {
		d.warn("both roles are in namespace %s: it must be privileged because of the node role, and the credentials are in it", node.Value)
	}
	return controller, node
}

// Unconstrained are the namespaces that OpenShift leaves out of its security context constraints, by their names.
var Unconstrained = []string{"default", "kube-public", "kube-system", "openshift", "openshift-infra", "openshift-node"}

func (d *decider) checkNamespace(key, name string) {
	if name != "" && !isLabel(name) {
		d.problem("%s: %q is not a namespace's name: lower-case letters, digits and '-', at most 63 characters", key, name)
	}
	if d.openShift() && slices.Contains(Unconstrained, name) {
		d.problem("%s: OpenShift applies no security context constraint in %s, so nothing chooses the user and group of the pods; name another namespace. For a bundle that is there, generate with --accept namespace, and remove the old objects", key, name)
	}
}

// hostedClusterName is the name of the hosted cluster, also where the configuration has none.
func (d *decider) hostedClusterName() string { return cmp.Or(d.dist.Metadata.Name, "example") }

// hostedNamespaces: the controller lives in the hosted control plane's namespace, which HyperShift makes and names
// <HostedCluster's namespace>-<its name>, "." as "-".
func (d *decider) hostedNamespaces(controller, node *Decision[string]) {
	orElse(node, guestNamespace, "the nodes and the leases are in this namespace of the guest cluster")
	if controller.Value != "" {
		return
	}
	name := d.hostedClusterName()
	namespace := "clusters-" + strings.ReplaceAll(name, ".", "-")
	if !isLabel(namespace) {
		d.problem("metadata.name: %q makes no namespace's name; set spec.namespaces.controller to the hosted control plane's namespace", name)
	}
	orElse(controller, namespace, "the controller runs in the namespace of the hosted control plane, which HyperShift names clusters-<metadata.name>")
	d.warn("spec.namespaces.controller is not set: %s is assumed to be the hosted control plane's namespace", namespace)
}

func (d *decider) clusterID() Decision[string] {
	decision := Decision[string]{Source: FromConfig}
	infraID := ""
	if d.target == v1alpha1.HostedControlPlane {
		infraID = d.hostedClusterID()
	}
	switch {
	case infraID != "":
		decision.Value, decision.Reason = infraID, "taken from spec.hypershift.infraID: OpenShift marks the volumes of the hosted cluster with it too"
	case d.given.ClusterID != "":
		decision.Value, decision.Reason = d.given.ClusterID, "spec.clusterID is set"
	case d.dist.Metadata.Name != "":
		decision.Value, decision.Reason = d.dist.Metadata.Name, "taken from metadata.name; it marks this cluster's volumes in Cinder"
	default:
		decision.Value, decision.Source = UnnamedCluster, Default
		decision.Reason = "neither spec.clusterID nor metadata.name is set; upstream's manifests use this name"
		d.warn("neither metadata.name nor spec.clusterID is set: volumes are marked as those of cluster %q, like those of every other unnamed cluster", UnnamedCluster)
	}
	if d.given.ClusterID == "" && d.target == v1alpha1.Standalone {
		d.warn("spec.clusterID is not set: volumes are marked %q, and `openshift-install destroy` removes those that are marked with the infrastructure name "+
			"(oc get infrastructure cluster -o jsonpath='{.status.infrastructureName}')", decision.Value)
	}
	if len(decision.Value) > 255 {
		d.problem("spec.clusterID: want at most the 255 characters of a Cinder metadata value")
	}
	d.spec.ClusterID = decision.Value
	return decision
}

// hostedClusterID is the infrastructure ID of the hosted cluster, if the configuration has it. HyperShift removes the volumes that are marked
// with it when it destroys the cluster.
func (d *decider) hostedClusterID() string {
	infraID := d.spec.HyperShift.InfraID
	switch {
	case infraID != "" && d.given.ClusterID != "" && d.given.ClusterID != infraID:
		d.problem("spec.clusterID: %q contradicts spec.hypershift.infraID, which is the cluster ID on hypershift; leave spec.clusterID out", d.given.ClusterID)
	case infraID == "" && d.given.ClusterID == "" && d.dist.Metadata.Name != "":
		d.warn("spec.hypershift.infraID is not set: volumes are marked %q instead of the infrastructure ID, which is the field spec.infraID of the HostedCluster", d.dist.Metadata.Name)
	}
	return infraID
}

// Unconfigured is a result with what a target has by default: its kind, its namespaces and its driver name. The bases in manifests/ have these.
func Unconfigured(target v1alpha1.Target) Result {
	d := &decider{target: target}
	r := Result{Target: target, Format: v1alpha1.Kustomize}
	r.OpenShift.Value, r.Hosted.Value = d.openShift(), target == v1alpha1.HostedControlPlane
	r.ControllerNamespace, r.NodeNamespace = d.namespaces()
	r.Driver.Value = contract.DriverName
	if d.openShift() {
		r.Driver.Value = v1alpha1.OwnDriverName
	}
	return r
}
