package plan

import (
	"cmp"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// NodePool are nodes with a DaemonSet of their own. Nil and empty mean: as for all nodes. Its JSON names fields as the chart does.
type NodePool struct {
	Name              string                `json:"-"` // it is in the decision's id
	NodeSelector      map[string]string     `json:"nodeSelector"`
	Tolerations       []v1alpha1.Toleration `json:"tolerations,omitzero"`
	VolumeAttachLimit *int                  `json:"volumeAttachLimit,omitempty"`
	KubeletDir        string                `json:"kubeletDir,omitempty"`
}

func (p *NodePool) label() *string { return &p.Name }

// maxPoolName leaves room for the names of the pods.
const maxPoolName = 40

// maxPools bounds how long a bundle takes: each DaemonSet names the labels of all pools.
const maxPools = 100

// nodePools are the configured pools, sorted by name, so that their order in the configuration changes nothing.
func (d *decider) nodePools() []Decision[NodePool] {
	var pools []Decision[NodePool]
	if len(d.spec.NodePools) > maxPools {
		d.problem("spec.nodePools: has more than %d items; pools with the same settings can be one, selected by a label that their nodes share", maxPools)
		return nil
	}
	for i, p := range d.spec.NodePools {
		d.checkNodePool(item("spec.nodePools", i), p, d.spec.NodePools[:i])
		pools = append(pools, Decision[NodePool]{
			Value:  NodePool{p.Name, p.NodeSelector, p.Tolerations, p.VolumeAttachLimit, p.KubeletDir},
			Source: FromConfig, Reason: "spec.nodePools has it: a DaemonSet for its nodes, which the DaemonSet of the other nodes leaves out",
		})
	}
	slices.SortFunc(pools, func(a, b Decision[NodePool]) int { return cmp.Compare(a.Value.Name, b.Value.Name) })
	return pools
}

func (d *decider) checkNodePool(path string, p v1alpha1.NodePool, earlier []v1alpha1.NodePool) {
	if !isLabel(p.Name) || len(p.Name) > maxPoolName {
		d.problem("%s.name: %q; want at most %d lower-case letters, digits and '-'", path, p.Name, maxPoolName)
	}
	if len(p.NodeSelector) != 1 {
		d.problem("%s.nodeSelector: want one label, because the other DaemonSet leaves the nodes with it out", path)
	}
	d.checkLabelSet(path+".nodeSelector", p.NodeSelector)
	for i, t := range p.Tolerations {
		d.checkToleration(item(path+".tolerations", i), t)
	}
	if limit := p.VolumeAttachLimit; limit != nil && (*limit < 1 || *limit > 256) {
		d.problem("%s.volumeAttachLimit: %d; want 1 to 256", path, *limit)
	}
	if p.KubeletDir != "" {
		for _, problem := range v1alpha1.KubeletDirectory.Problems(p.KubeletDir) {
			d.problem("%s.kubeletDir: %s", path, problem)
		}
	}
	for i, other := range earlier {
		if other.Name == p.Name {
			d.problem("%s.name: %s has the name %s too; their DaemonSets would be one", path, item("spec.nodePools", i), p.Name)
		}
		for key, value := range p.NodeSelector {
			switch was, same := other.NodeSelector[key]; {
			case same && was == value:
				d.problem("%s.nodeSelector: %s has the label %s=%s too; its nodes would run two of the driver", path, item("spec.nodePools", i), key, value)
			case !same && len(other.NodeSelector) == 1:
				d.problem("%s.nodeSelector: %s selects by another label than %s; a node with both would run two of the driver. Give all pools one label with different values",
					path, item("spec.nodePools", i), key)
			}
		}
	}
}
