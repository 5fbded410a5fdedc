package doctor

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// checkNeighbours looks for pods of tenants on the nodes that run the installed controller. A kubelet may read every Secret of the pods on its node.
// So an attacker who breaks out of such a pod has the credentials of the project.
func (c *clusterCheck) checkNeighbours(pods []pod) {
	nodes := map[string]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != "" && c.isController(p) {
			nodes[p.Spec.NodeName] = true
		}
	}
	found := map[string]bool{}
	for _, p := range pods {
		if nodes[p.Spec.NodeName] && !c.ofAdministrator(p) {
			found[p.Spec.NodeName+" (namespace "+p.Metadata.Namespace+")"] = true
		}
	}
	if len(found) > 0 {
		c.report.add("cluster.neighbours", Warning, "pods of other namespaces run on nodes of the controller: "+list(slices.Sorted(maps.Keys(found))),
			"an attacker who breaks out of one of them can read the Secrets of the controller, and so control the project in the cloud",
			"give the controller nodes without such pods (spec.roles.controller.nodeSelector, with a label of node-restriction.kubernetes.io/, which no kubelet may write). After a node was compromised, replace the credentials")
		return
	}
	c.report.ok("cluster.neighbours", "the nodes of an installed controller run no pods of other namespaces")
}

// isController is whether the Deployment of the bundle made the pod, by a ReplicaSet.
func (c *clusterCheck) isController(p pod) bool {
	return slices.ContainsFunc(c.Bundle.Workloads, func(w cluster.Workload) bool {
		return w.Kind == "Deployment" && w.Namespace == p.Metadata.Namespace && slices.ContainsFunc(p.Metadata.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == "ReplicaSet" && strings.HasPrefix(o.Name, w.Name+"-")
		})
	})
}

// ofAdministrator is whether an administrator of the cluster brought the pod. Such a pod is in a namespace of the bundle or of the platform, or
// belongs to a DaemonSet, which runs on every node.
func (c *clusterCheck) ofAdministrator(p pod) bool {
	namespace := p.Metadata.Namespace
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift-") ||
		slices.ContainsFunc(c.Bundle.Workloads, func(w cluster.Workload) bool { return w.Namespace == namespace }) ||
		slices.ContainsFunc(p.Metadata.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}
