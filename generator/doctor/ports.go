package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// pod is what is read of a pod: which ports of its node it declares, and who made it.
type pod struct {
	Metadata struct {
		Namespace       string                  `json:"namespace"`
		Name            string                  `json:"name"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		HostNetwork    bool        `json:"hostNetwork"`
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`
}

type container struct {
	Ports []corev1.ContainerPort `json:"ports"`
}

// checkPorts looks for other pods on the host ports of the nodes. A port is found where a pod declares it; a program that listens without a
// declaration is not.
func (c *clusterCheck) checkPorts(ctx context.Context) {
	ours := map[int32]bool{}
	for _, w := range c.Bundle.Workloads {
		for _, c := range slices.Concat(w.Pod.InitContainers, w.Pod.Containers) {
			for port := range hostPorts(w.Pod.HostNetwork, c.Ports) {
				ours[port] = true
			}
		}
	}
	if len(ours) == 0 {
		c.report.ok("cluster.ports", "the bundle takes no port of the nodes")
		return
	}
	pods, err := cluster.Select[pod](ctx, c.cluster, "/api/v1/pods", cluster.Selector{Fields: "status.phase!=Succeeded,status.phase!=Failed"})
	if c.failed("the ports of the nodes", err) {
		return
	}
	seen := map[string]bool{}
	for _, p := range pods {
		if c.isOurs(p) {
			continue
		}
		for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			for port := range hostPorts(p.Spec.HostNetwork, container.Ports) {
				if ours[port] {
					seen[fmt.Sprintf("%d (%s)", port, owner(p))] = true
				}
			}
		}
	}
	if len(seen) > 0 {
		c.report.add("cluster.ports", Error, "other pods declare host ports of the bundle: "+list(slices.Sorted(maps.Keys(seen))),
			"Kubernetes starts the driver on no node that has such a pod, and volumes cannot be mounted there", "set spec.monitoring.nodePorts to three free ports")
		return
	}
	c.report.ok("cluster.ports", "no other pod declares one of the %d host ports of the bundle", len(ours))
}

// hostPorts are the ports of the node among those that a container declares.
func hostPorts(hostNetwork bool, declared []corev1.ContainerPort) map[int32]bool {
	ports := map[int32]bool{}
	for _, p := range declared {
		switch {
		case p.Protocol != "" && p.Protocol != corev1.ProtocolTCP:
		case hostNetwork:
			ports[p.ContainerPort] = true
		case p.HostPort != 0:
			ports[p.HostPort] = true
		}
	}
	return ports
}

// isOurs is whether a workload of the bundle, as it is installed already, made the pod.
func (c *clusterCheck) isOurs(p pod) bool {
	return slices.ContainsFunc(c.Bundle.Workloads, func(w cluster.Workload) bool {
		return w.Namespace == p.Metadata.Namespace && slices.ContainsFunc(p.Metadata.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == w.Kind && o.Name == w.Name })
	})
}

// owner names what made the pod, once for all pods of a DaemonSet.
func owner(p pod) string {
	for _, o := range p.Metadata.OwnerReferences {
		return o.Kind + " " + p.Metadata.Namespace + "/" + o.Name
	}
	return "pod " + p.Metadata.Namespace + "/" + p.Metadata.Name
}
