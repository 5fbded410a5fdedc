package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// metricsPort is the last of the host ports of a node. It is 0 where an older version made the plan.
func metricsPort(r plan.Result) int {
	if r.NodePorts.Value == 0 {
		return 0
	}
	return r.NodePorts.Value + plan.NodePortCount - 1
}

// nodePortsValue is auto where the chart decides as the plan did.
func (p *plane) nodePortsValue() node {
	if p.r.NodePorts.Source == plan.Default {
		return decidedField(p.r.NodePorts, "", v1alpha1.Auto)
	}
	return decided(p.r.NodePorts)
}
