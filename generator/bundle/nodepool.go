package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// nodeSet is one of the DaemonSets: that of a pool, or without one that of all other nodes.
type nodeSet struct{ pool *plan.Decision[plan.NodePool] }

// nodeSets are all DaemonSets of the plane.
func (p *plane) nodeSets() []nodeSet {
	sets := []nodeSet{{}}
	for i := range p.r.NodePools {
		sets = append(sets, nodeSet{&p.r.NodePools[i]})
	}
	return sets
}

// of is a value that comes from a field of the pool.
func (s nodeSet) of(field string, value any) node { return decidedField(*s.pool, field, value) }

// poolValues are the pools as the chart has them.
func (p *plane) poolValues() list {
	var all list
	for _, s := range p.nodeSets() {
		if s.pool == nil {
			continue
		}
		pool := s.pool.Value
		values := object{"name": s.of("", pool.Name), "nodeSelector": s.of("nodeSelector", pool.NodeSelector)}
		if pool.Tolerations != nil {
			values["tolerations"] = s.of("tolerations", pool.Tolerations)
		}
		if pool.VolumeAttachLimit != nil {
			values["volumeAttachLimit"] = s.of("volumeAttachLimit", *pool.VolumeAttachLimit)
		}
		if pool.KubeletDir != "" {
			values["kubeletDir"] = s.of("kubeletDir", pool.KubeletDir)
		}
		all = append(all, values)
	}
	return all
}
