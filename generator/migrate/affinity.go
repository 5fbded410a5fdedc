package migrate

import (
	"encoding/json"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// setAffinity takes out of the affinity of all nodes what leaves the nodes of the pools out: pools have this affinity too.
func setAffinity(of pods) func(*proposal, value) error {
	set := eachPlane(of, func(pl *v1alpha1.Plane) any { return &pl.Affinity })
	if of.name != nodePods.name {
		return set
	}
	return func(p *proposal, v value) error {
		if err := set(p, v); err != nil || p.known.nodePools == nil || p.Spec.Planes.Node.Affinity == nil {
			return err
		}
		return p.affinityBesidePools()
	}
}

func (p *proposal) affinityBesidePools() error {
	sets := p.known.nodePools
	before, err := json.Marshal(p.Spec.Planes.Node.Affinity)
	if err != nil {
		return errType
	}
	lossy := sets.withoutPools(p.Spec.Planes.Node.Affinity)
	after, err := json.Marshal(p.Spec.Planes.Node.Affinity)
	if err != nil {
		return errType
	}
	nothing := string(after) == "{}"
	if nothing {
		p.Spec.Planes.Node.Affinity = nil
	}
	switch {
	case lossy && nothing:
		return leave("pools have the affinity of all nodes too, and it excludes theirs. " + checkRest)
	case lossy:
		p.why = "without its conditions on the label " + sets.key + ", because pools have this affinity too. " + checkRest
	case nothing:
		return leave("the bundle leaves the nodes of the pools out by itself")
	case string(before) != string(after):
		p.why = "without what leaves the nodes of the pools out, which the bundle does by itself"
	}
	return nil
}

const checkRest = "Check that the nodes without a pool are those that should have the driver"

// withoutPools changes the affinity so that it allows the nodes of every pool. It is lossy if it had more to say about their label.
func (n *nodePools) withoutPools(a *v1alpha1.Affinity) (lossy bool) {
	if a.NodeAffinity == nil || a.NodeAffinity.Required == nil {
		return false
	}
	terms := a.NodeAffinity.Required.NodeSelectorTerms
	always := false // a term that every node satisfies
	for i := range terms {
		var kept []v1alpha1.NodeRequirement
		for _, r := range terms[i].MatchExpressions {
			switch {
			case r.Key != n.key || n.allows(r):
				kept = append(kept, r)
			case r.Operator == "NotIn":
				r.Values = slices.DeleteFunc(slices.Clone(r.Values), n.hasValue)
				if len(r.Values) > 0 {
					kept = append(kept, r)
				}
			default:
				lossy = true
			}
		}
		always = always || len(terms[i].MatchExpressions) > 0 && len(kept)+len(terms[i].MatchFields) == 0
		terms[i].MatchExpressions = kept
	}
	if always {
		a.NodeAffinity.Required = nil
		if len(a.NodeAffinity.Preferred) == 0 {
			a.NodeAffinity = nil
		}
	}
	return lossy
}

// hasValue is whether a pool has the nodes with this value of the label.
func (n *nodePools) hasValue(value string) bool {
	return slices.ContainsFunc(n.pools, func(p *nodePool) bool { return p.NodeSelector[n.key] == value })
}

// allows is whether a condition on the label is true on the nodes of every pool.
func (n *nodePools) allows(r v1alpha1.NodeRequirement) bool {
	switch r.Operator {
	case "Exists":
		return true
	case "NotIn":
		return !slices.ContainsFunc(r.Values, n.hasValue)
	case "In":
		return !slices.ContainsFunc(n.pools, func(p *nodePool) bool { return !slices.Contains(r.Values, p.NodeSelector[n.key]) })
	}
	return false
}
