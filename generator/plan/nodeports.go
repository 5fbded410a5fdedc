package plan

import (
	"strconv"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const (
	// NodePortCount is how many consecutive ports of the host the pods of the nodes take: health, registrar, metrics.
	NodePortCount = 3

	// openShiftNodePort is in the range that OpenShift's installer opens between the nodes of an OpenStack cloud: 9000 to 9999.
	openShiftNodePort                = 9601
	openShiftFirstOpen, openShiftEnd = 9000, 10000

	// Kubernetes gives Services ports from 30000, and Linux gives outgoing connections those from 32768 to 60999.
	firstAssigned, lastAssigned = 30000, 60999
)

// nodePorts are the host ports of the nodes: their pods use the host's network, because the metadata service has a link-local address.
func (d *decider) nodePorts(monitoring string) Decision[int] {
	const key = "spec.monitoring.nodePorts"
	set := string(d.spec.Monitoring.NodePorts)
	if set == v1alpha1.Auto {
		if d.openShift() {
			return Decision[int]{Value: openShiftNodePort, Source: Default, Reason: "OpenShift's installer opens the ports 9000 to 9999 between nodes, so Prometheus reaches the metrics of every node"}
		}
		return Decision[int]{Value: base().nodePort, Source: Default, Reason: "the ports of the base; spec.monitoring.nodePorts moves them"}
	}
	first, err := strconv.Atoi(set)
	last := first + NodePortCount - 1
	switch {
	case err != nil || first < 1024 || last > 65535 || strconv.Itoa(first) != set:
		d.problem("%s: %q is neither auto nor a port from 1024 to %d, the first of %d in a row", key, set, 65536-NodePortCount, NodePortCount)
	case last >= firstAssigned && first <= lastAssigned:
		d.warn("%s: %d to %d are among the ports that Kubernetes gives to Services (30000 to 32767) or Linux to outgoing connections (32768 to 60999). "+
			"If one is taken when a pod starts, the driver of that node does not work: choose ports below %d", key, first, last, firstAssigned)
	case d.openShift() && monitoring != v1alpha1.None && (first < openShiftFirstOpen || last >= openShiftEnd):
		d.warn("%s: OpenShift's installer opens the ports 9000 to 9999 between nodes, and %d to %d are others. Prometheus reads only the node that it runs on "+
			"until the security group of the nodes opens port %d", key, first, last, last)
	}
	return Decision[int]{Value: first, Source: FromConfig, Reason: key + " is set"}
}
