package plan

import (
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The default namespaces. The roles are apart, because Pod Security labels belong to a namespace: the controller's is
// restricted, the node's privileged, and the Secret with the credentials lies beside the controller only.
const (
	controllerNamespace = "cinder-csi"
	nodeNamespace       = "cinder-csi-node"
	guestNamespace      = "cinder-csi"
)

// unnamedCluster is the cluster's name in the Cinder metadata of upstream's manifests.
const unnamedCluster = "kubernetes"

func (d *decider) namespaces() Decision[v1alpha1.Namespaces] {
	given := d.given.Namespaces
	decision := Decision[v1alpha1.Namespaces]{Value: given, Source: sourceOf(given.Controller != "" && given.Node != "")}
	d.checkNamespace("controller", given.Controller)
	d.checkNamespace("node", given.Node)
	if decision.Source == FromConfig {
		decision.Reason = "spec.namespaces is set"
	}
	if d.target == v1alpha1.HostedControlPlane {
		d.hostedNamespaces(&decision)
		return decision
	}
	if decision.Value.Controller == "" {
		decision.Value.Controller = controllerNamespace
	}
	if decision.Value.Node == "" {
		decision.Value.Node = nodeNamespace
	}
	if decision.Reason == "" {
		decision.Reason = "the roles are apart: the controller's namespace is restricted and holds the credentials, the node's is privileged"
	}
	if decision.Value.Controller == decision.Value.Node {
		d.warn("both roles are in namespace %s: it must be privileged for the node's sake, and the credentials lie in it", decision.Value.Node)
	}
	return decision
}

func (d *decider) checkNamespace(key, name string) {
	if name != "" && !isLabel(name) {
		d.problem("spec.namespaces.%s: %q is not a namespace's name: lower-case letters, digits and '-', at most 63 characters", key, name)
	}
}

// hostedNamespaces: the controller lives in the hosted control plane's namespace, which HyperShift makes and names
// <HostedCluster's namespace>-<its name>, "." as "-".
func (d *decider) hostedNamespaces(decision *Decision[v1alpha1.Namespaces]) {
	if decision.Value.Node == "" {
		decision.Value.Node = guestNamespace
	}
	if decision.Value.Controller == "" {
		name := d.dist.Metadata.Name
		if name == "" {
			name = "example"
		}
		namespace := "clusters-" + strings.ReplaceAll(name, ".", "-")
		if !isLabel(namespace) {
			d.problem("metadata.name: %q makes no namespace's name; set spec.namespaces.controller to the hosted control plane's namespace", name)
		}
		decision.Value.Controller = namespace
		d.warn("spec.namespaces.controller is not set: %s is assumed to be the hosted control plane's namespace", namespace)
	}
	if decision.Reason == "" {
		decision.Reason = "the controller runs in the hosted control plane's namespace, the nodes and the leases are in the guest's"
	}
}

func (d *decider) clusterID() Decision[string] {
	decision := Decision[string]{Source: FromConfig}
	switch {
	case d.given.ClusterID != "":
		decision.Value, decision.Reason = d.given.ClusterID, "spec.clusterID is set"
	case d.dist.Metadata.Name != "":
		decision.Value, decision.Reason = d.dist.Metadata.Name, "taken from metadata.name; it marks this cluster's volumes in Cinder"
	case d.target == v1alpha1.HostedControlPlane && d.spec.HyperShift.InfraID != "":
		decision.Value, decision.Reason = d.spec.HyperShift.InfraID, "taken from spec.hypershift.infraID, with which OpenShift marks volumes too"
	default:
		decision.Value, decision.Source = unnamedCluster, Default
		decision.Reason = "neither spec.clusterID nor metadata.name is set; upstream's manifests use this name"
		d.warn("neither metadata.name nor spec.clusterID is set: volumes are marked as those of cluster %q, like those of every other unnamed cluster", unnamedCluster)
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
