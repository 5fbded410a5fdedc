package bundle

import (
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

// nodePortsValue is auto where the chart decides as the plan did.
func (p *plane) nodePortsValue() node {
	if p.r.NodePorts.Source == plan.Default {
		return decidedField(p.r.NodePorts, "", v1alpha1.Auto)
	}
	return decided(p.r.NodePorts)
}
