package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// pod is what is read of a pod: its node, which ports of that it declares, who made it, and why its containers ended.
type pod struct {
	Metadata struct {
		Namespace       string                  `json:"namespace"`
		Name            string                  `json:"name"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string      `json:"nodeName"`
		HostNetwork    bool        `json:"hostNetwork"`
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`
	Status struct {
		InitContainers []containerStatus `json:"initContainerStatuses"`
		Containers     []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type container struct {
	Name     string                 `json:"name"`
	Ports    []corev1.ContainerPort `json:"ports"`
	Security struct {
		SELinux struct {
			Type string `json:"type"`
		} `json:"seLinuxOptions"`
		Privileged bool `json:"privileged"`
	} `json:"securityContext"`
}

type containerStatus struct {
	Name      string `json:"name"`
	LastState struct {
		Terminated struct {
			Message string `json:"message"`
		} `json:"terminated"`
	} `json:"lastState"`
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
	c.checkConfined(pods)
	c.checkNeighbours(pods)
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

// checkConfined looks for a registrar of the installed driver that cannot reach the socket of the driver. Where a node enforces SELinux, the policy
// keeps an ordinary container from it. The registrar only repeats that it still connects, until its liveness probe ends it.
func (c *clusterCheck) checkConfined(pods []pod) {
	for _, p := range pods {
		if !c.isOurs(p) {
			continue
		}
		for _, status := range slices.Concat(p.Status.InitContainers, p.Status.Containers) {
			message := status.LastState.Terminated.Message
			confined := func(c container) bool {
				return c.Name == status.Name && c.Security.SELinux.Type == "" && !c.Security.Privileged
			}
			if (strings.Contains(message, "Still connecting") || strings.Contains(message, "permission denied")) &&
				slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), confined) {
				c.report.add("cluster.selinux", Warning, fmt.Sprintf("container %s of pod %s/%s ended before it reached the socket of the driver", status.Name, p.Metadata.Namespace, p.Metadata.Name),
					"the driver is not registered on its node; if the node enforces SELinux, its policy keeps the container from the socket",
					"if getenforce on the node prints Enforcing, set spec.driver.seLinux to enabled; else read the log of the driver on that node")
				return
			}
		}
	}
	c.report.ok("cluster.selinux", "no sidecar of an installed driver was kept from the socket of the driver")
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
