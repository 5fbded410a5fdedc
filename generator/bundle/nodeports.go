package bundle

import (
	"net"
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The host ports of a node, counted from the first.
const (
	portHealthz = iota
	portRegistrar
	portMetrics
)

// nodePort is one of the ports of the node's pods. It is 0 where an older version made the plan.
func nodePort(r plan.Result, which int) int {
	if r.NodePorts.Value == 0 {
		return 0
	}
	return r.NodePorts.Value + which
}

// portSettings are the addresses on which the containers of a node listen.
func (p *plane) portSettings() object {
	if p.r.NodePorts.Value == 0 {
		return object{}
	}
	address := func(host string, which int) string { return net.JoinHostPort(host, strconv.Itoa(nodePort(p.r, which))) }
	metrics := "127.0.0.1"
	if p.monitored() {
		metrics = "" // as the component metrics-node has it
	}
	return object{
		"HEALTHZ_ADDRESS":   part(p.r.NodePorts, "", address("127.0.0.1", portHealthz)),
		"REGISTRAR_ADDRESS": part(p.r.NodePorts, "", address("127.0.0.1", portRegistrar)),
		"METRICS_ADDRESS":   from(address(metrics, portMetrics), refOf(p.r.Monitoring), refOf(p.r.NodePorts)),
	}
}

// portPatch declares the same ports: with the host's network Kubernetes keeps two pods that declare one port from the same node. A merge knows a
// port by its number and would add a second, so this patch names the place. The patch of the DaemonSet has put the containers into this order.
func (p *plane) portPatch(s nodeSet) []patch {
	if p.r.NodePorts.Value == 0 {
		return nil
	}
	registrar, registrarAt := "/spec/template/spec/containers/1", field.Path{"spec", "template", "spec", "containers", "[registrar]"}
	if p.r.DrainHook.Value {
		registrar, registrarAt = "/spec/template/spec/initContainers/0", field.Path{"spec", "template", "spec", "initContainers", "[registrar]"}
	}
	driver, driverAt := "/spec/template/spec/containers/0", field.Path{"spec", "template", "spec", "containers", "[driver]"}
	declare := func(pointer string, at field.Path, index, name string, which int) op {
		return op{
			pointer: pointer + "/ports/" + index + "/containerPort", at: append(at[:len(at):len(at)], "ports", "["+name+"]", "containerPort"),
			value: part(p.r.NodePorts, "", nodePort(p.r, which)),
		}
	}
	return []patch{{
		file: s.patchFile("node-ports.yaml"), target: target{kinds: []string{"DaemonSet"}, name: s.daemonSet()},
		ops: []op{
			declare(driver, driverAt, "0", "metrics", portMetrics),
			declare(driver, driverAt, "1", "healthz", portHealthz),
			declare(registrar, registrarAt, "0", "registrar", portRegistrar),
		},
	}}
}

// metricsPort is the same port in the Service that the Prometheus operator may use.
func (p *plane) metricsPort() []patch {
	if p.r.NodePorts.Value == 0 {
		return nil
	}
	return []patch{{
		file: "patches/node-metrics-port.yaml", target: target{kinds: []string{"Service"}, name: "cinder-csi-node-metrics"},
		ops: []op{{pointer: "/spec/ports/0/port", at: field.Path{"spec", "ports", "[metrics]", "port"}, value: part(p.r.NodePorts, "", nodePort(p.r, portMetrics))}},
	}}
}

// nodePortsValue is auto where the chart decides as the plan did.
func (p *plane) nodePortsValue() node {
	if p.r.NodePorts.Source == plan.Default {
		return part(p.r.NodePorts, "", v1alpha1.Auto)
	}
	return whole(p.r.NodePorts)
}
