package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// listenFlags are the flags of the driver and of the sidecars that name an address or a port to listen on.
var listenFlags = []string{"http-endpoint", "metrics-address", "health-port", "secure-listen-address"}

// ports are the TCP ports that are taken in one network: of a pod, or of the nodes where pods use the host's network. The value says who
// has the port. A container may declare a port on which another container of the pod listens:
// livenessprobe answers the probe of the driver.
type ports struct{ declared, listening map[int32][]holder }

// holder is a container that has a port.
type holder struct {
	who string
	pod *corev1.PodSpec
}

func newPorts() ports { return ports{map[int32][]holder{}, map[int32][]holder{}} }

// take adds a port, and gives who has it already; "" for nobody. Pods that no node can run together may have the same port.
func take(of map[int32][]holder, port int32, h holder) string {
	for _, other := range of[port] {
		if !neverTogether(other.pod, h.pod) {
			return other.who
		}
	}
	of[port] = append(of[port], h)
	return ""
}

// neverTogether is whether no node runs both pods: their selectors name one label with two values, or one leaves the nodes of the other out.
func neverTogether(a, b *corev1.PodSpec) bool {
	for key, value := range a.NodeSelector {
		if other, there := b.NodeSelector[key]; there && other != value {
			return true
		}
	}
	return leavesOut(a, b) || leavesOut(b, a)
}

// leavesOut is whether each term of a node affinity excludes a label that the selector of the other pod asks for.
func leavesOut(pod, other *corev1.PodSpec) bool {
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	excludes := func(r corev1.NodeSelectorRequirement) bool {
		value, asked := other.NodeSelector[r.Key]
		return asked && r.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(r.Values, value)
	}
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return !slices.ContainsFunc(t.MatchExpressions, excludes) })
}

// podPorts checks that every port of a pod belongs to one container, and that every probe asks a port that its container declares.
func (c *checker) podPorts(pod corev1.PodSpec, values map[string]map[string]string) {
	network, place := newPorts(), "of the pod"
	if pod.HostNetwork {
		network, place = c.hostPorts, "on the host's network"
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		where := "container " + container.Name
		who := holder{strings.TrimPrefix(c.at.String(), c.plane+": ") + " " + where, &pod}
		for _, p := range container.Ports {
			if first := take(network.declared, p.ContainerPort, who); first != "" {
				c.find("%s: ports: %s has port %d %s too; give one of them another port", where, first, p.ContainerPort, place)
			}
			if p.HostPort == 0 || pod.HostNetwork {
				continue
			}
			if first := take(c.hostPorts.declared, p.HostPort, who); first != "" {
				c.find("%s: ports: %s has hostPort %d too; give one of them another port", where, first, p.HostPort)
			}
		}
		for _, port := range listening(container, values[container.Name]) {
			if first := take(network.listening, port, who); first != "" {
				c.find("%s: args: %s listens on port %d %s too, so one of them cannot start; give one of them another port", where, first, port, place)
			}
		}
		for name, probe := range map[string]*corev1.Probe{"livenessProbe": container.LivenessProbe, "readinessProbe": container.ReadinessProbe, "startupProbe": container.StartupProbe} {
			c.probe(where+": "+name, container, probe)
		}
	}
}

// listening are the ports that the flags of a container name, in the order of the flags.
func listening(container corev1.Container, values map[string]string) []int32 {
	var all []int32
	for _, arg := range container.Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(expand(arg, values), "--"), "=")
		if !slices.Contains(listenFlags, name) {
			continue
		}
		port, err := strconv.ParseUint(value[strings.LastIndexByte(value, ':')+1:], 10, 16)
		if err == nil && port != 0 {
			all = append(all, int32(port))
		}
	}
	return all
}

// probe: the kubelet finds a port by its name in the same container only, and restarts a container whose port it does not find.
func (c *checker) probe(where string, container corev1.Container, probe *corev1.Probe) {
	if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.Type != intstr.String {
		return
	}
	name, declared := probe.HTTPGet.Port.StrVal, map[string]bool{}
	for _, p := range container.Ports {
		declared[p.Name] = true
	}
	if !declared[name] {
		c.find("%s: the container has no port %q, only %s; name one of these", where, name, names(declared))
	}
}

func names(of map[string]bool) string {
	if len(of) == 0 {
		return "none"
	}
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(of)))
}
