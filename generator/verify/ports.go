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
type ports struct{ declared, listening map[int32]string }

func newPorts() ports { return ports{map[int32]string{}, map[int32]string{}} }

// take adds a port, and gives who has it already; "" for nobody.
func take(of map[int32]string, port int32, who string) string {
	if first, taken := of[port]; taken {
		return first
	}
	of[port] = who
	return ""
}

// podPorts checks that every port of a pod belongs to one container, and that every probe asks a port that its container declares.
func (c *checker) podPorts(pod corev1.PodSpec, values map[string]map[string]string) {
	network, place := newPorts(), "of the pod"
	if pod.HostNetwork {
		network, place = c.hostPorts, "on the host's network"
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		where := "container " + container.Name
		who := strings.TrimPrefix(c.at.String(), c.plane+": ") + " " + where
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
