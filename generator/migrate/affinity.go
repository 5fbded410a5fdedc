package migrate

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// setAffinity takes out of the affinity of all nodes what leaves the nodes of the pools out: pools have this affinity too.
func setAffinity(of pods) func(*proposal, value) error {
	set := aboutPods(eachRole(of, func(pl *v1alpha1.RolePods) any { return &pl.Affinity }))
	if of.name != nodePods.name {
		return set
	}
	return func(p *proposal, v value) error {
		if err := set(p, v); err != nil || p.known.nodePools == nil || p.Spec.Roles.Node.Affinity == nil {
			return err
		}
		return p.affinityBesidePools()
	}
}

// aboutPods leaves out the terms that select pods by a label of upstream's. No pod of a bundle has it, so they would select nothing. They would
// still replace what the bundle has by default.
func aboutPods(set func(*proposal, value) error) func(*proposal, value) error {
	const why = "without the terms that select pods by a label of upstream's, because no pod of a bundle has it"
	return func(p *proposal, v value) error {
		template, err := podTemplate(p.document)
		if err != nil {
			return err
		}
		kept, without := withoutOldLabels(v.any, template.Labels)
		if (value{kept}).empty() {
			return leave("it selects pods by a label of upstream's, which no pod of a bundle has; the bundle has its own rule")
		}
		err = set(p, value{kept})
		if unknown := (*unknownField)(nil); errors.As(err, &unknown) {
			return leave(unknown.Error() + "; add the rule with a Kustomize layer over the bundle")
		}
		if without && p.why == "" {
			p.why = why
		}
		if err == nil && anyBelow(kept, namesNamespaces) {
			p.why = strings.TrimPrefix(p.why+". ", ". ") + "It names namespaces of pods: see that they are those of the bundle (spec.namespaces)"
		}
		return err
	}
}

// withoutOldLabels takes out each term that selects the pods of the old driver, and what is empty then. It reports whether there was one.
func withoutOldLabels(v any, own map[string]string) (any, bool) {
	without := false
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, below := range v {
			more, cut := withoutOldLabels(below, own)
			without = without || cut
			if !cut || !(value{more}).empty() {
				kept[key] = more
			}
		}
		return kept, without
	case []any:
		var kept []any
		for _, item := range v {
			if selectsOldPods(item, own) {
				without = true
				continue
			}
			more, cut := withoutOldLabels(item, own)
			if without = without || cut; !cut || !(value{more}).empty() {
				kept = append(kept, more)
			}
		}
		return kept, without
	}
	return v, false
}

// selectsOldPods reports whether a term, or a preference for one, selects the pods of the old driver. Those of a bundle lack the label.
func selectsOldPods(item any, own map[string]string) bool {
	term, _ := item.(map[string]any)
	if preferred, is := term["podAffinityTerm"].(map[string]any); is {
		term = preferred
	}
	var selector metav1.LabelSelector
	if (value{term["labelSelector"]}).loosely(&selector) != nil {
		return false
	}
	old := func(key string, values []string) bool {
		return upstreamLabel(key) && (len(values) == 0 || slices.ContainsFunc(values, func(v string) bool {
			return own[key] == v || strings.Contains(v, "cinder") || v == "controllerplugin" || v == "nodeplugin"
		}))
	}
	for key, v := range selector.MatchLabels {
		if old(key, []string{v}) {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return old(e.Key, e.Values) })
}

func namesNamespaces(v any) bool {
	term, _ := v.(map[string]any)
	return term["namespaces"] != nil
}

func (p *proposal) affinityBesidePools() error {
	sets := p.known.nodePools
	before, err := json.Marshal(p.Spec.Roles.Node.Affinity)
	if err != nil {
		return errType
	}
	lossy := sets.withoutPools(p.Spec.Roles.Node.Affinity)
	after, err := json.Marshal(p.Spec.Roles.Node.Affinity)
	if err != nil {
		return errType
	}
	nothing := string(after) == "{}"
	if nothing {
		p.Spec.Roles.Node.Affinity = nil
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
