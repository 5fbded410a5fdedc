package plan

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The checks of this file follow the API server's validation of affinity and of topologySpreadConstraints. A bundle with a mistake there
// would be refused when it is applied.

func (d *decider) checkAffinity(path string, a *v1alpha1.Affinity) {
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		d.checkNodeAffinity(path+".nodeAffinity", n)
	}
	if a.PodAffinity != nil {
		d.checkPodAffinity(path+".podAffinity", a.PodAffinity)
	}
	if a.PodAntiAffinity != nil {
		d.checkPodAffinity(path+".podAntiAffinity", a.PodAntiAffinity)
	}
}

const (
	requiredRules  = ".requiredDuringSchedulingIgnoredDuringExecution"
	preferredRules = ".preferredDuringSchedulingIgnoredDuringExecution"
)

func (d *decider) checkNodeAffinity(path string, n *v1alpha1.NodeAffinity) {
	if n.Required != nil {
		at := path + requiredRules + ".nodeSelectorTerms"
		if len(n.Required.NodeSelectorTerms) == 0 {
			d.problem("%s: want at least one term; without any no node fits", at)
		}
		for i, term := range n.Required.NodeSelectorTerms {
			d.checkNodeTerm(item(at, i), term)
		}
	}
	for i, p := range n.Preferred {
		at := item(path+preferredRules, i)
		d.checkWeight(at, p.Weight)
		d.checkNodeTerm(at+".preference", p.Preference)
	}
}

func (d *decider) checkNodeTerm(path string, term v1alpha1.NodeSelectorTerm) {
	for i, r := range term.MatchExpressions {
		d.checkRequirement(item(path+".matchExpressions", i), r.Key, r.Operator, r.Values)
	}
	for i, r := range term.MatchFields {
		at := item(path+".matchFields", i)
		if r.Key != "metadata.name" {
			d.problem("%s.key: %q; Kubernetes takes metadata.name alone", at, r.Key)
		}
		if r.Operator != "In" && r.Operator != "NotIn" || len(r.Values) != 1 {
			d.problem("%s: want operator In or NotIn and one value", at)
		}
	}
}

// checkRequirement checks a condition on a label, of nodes and of other objects.
func (d *decider) checkRequirement(path, key, operator string, values []string) {
	d.problemsOf(path+".key", key, content.IsLabelKey(key))
	switch operator {
	case "":
		d.problem("%s.operator: is not set", path)
	case "In", "NotIn":
		if len(values) == 0 {
			d.problem("%s.values: operator %s needs at least one value", path, operator)
		}
		for i, v := range values {
			d.problemsOf(item(path+".values", i), v, content.IsLabelValue(v))
		}
	case "Gt", "Lt":
		if len(values) != 1 {
			d.problem("%s.values: operator %s needs one whole number", path, operator)
		} else if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
			d.problem("%s.values: %q is not a whole number, and operator %s needs one", path, values[0], operator)
		}
	default:
		if len(values) > 0 {
			d.problem("%s.values: operator %s takes none", path, operator)
		}
	}
}

func (d *decider) checkPodAffinity(path string, a *v1alpha1.PodAffinity) {
	for i, term := range a.Required {
		d.checkPodTerm(item(path+requiredRules, i), term)
	}
	for i, p := range a.Preferred {
		at := item(path+preferredRules, i)
		d.checkWeight(at, p.Weight)
		d.checkPodTerm(at+".podAffinityTerm", p.PodAffinityTerm)
	}
}

func (d *decider) checkPodTerm(path string, term v1alpha1.PodAffinityTerm) {
	d.problemsOf(path+".topologyKey", term.TopologyKey, content.IsLabelKey(term.TopologyKey))
	d.checkSelector(path+".labelSelector", term.LabelSelector)
	d.checkSelector(path+".namespaceSelector", term.NamespaceSelector)
	for i, name := range term.Namespaces {
		if !isLabel(name) {
			d.problem("%s: %q is not a namespace's name", item(path+".namespaces", i), name)
		}
	}
}

func (d *decider) checkWeight(path string, weight int) {
	if weight < 1 || weight > 100 {
		d.problem("%s.weight: %d; want 1 to 100", path, weight)
	}
}

func (d *decider) checkSelector(path string, s *v1alpha1.LabelSelector) {
	if s == nil {
		return
	}
	d.checkLabelSet(path+".matchLabels", s.MatchLabels)
	for i, r := range s.MatchExpressions {
		d.checkRequirement(item(path+".matchExpressions", i), r.Key, r.Operator, r.Values)
	}
}

func (d *decider) checkSpread(path string, constraints []v1alpha1.TopologySpreadConstraint) {
	for i, c := range constraints {
		at := item(path, i)
		if c.MaxSkew < 1 {
			d.problem("%s.maxSkew: %d; want at least 1", at, c.MaxSkew)
		}
		d.problemsOf(at+".topologyKey", c.TopologyKey, content.IsLabelKey(c.TopologyKey))
		if c.WhenUnsatisfiable == "" {
			d.problem("%s.whenUnsatisfiable: is not set; want DoNotSchedule or ScheduleAnyway", at)
		}
		if c.MinDomains != nil && (*c.MinDomains < 1 || c.WhenUnsatisfiable != "DoNotSchedule") {
			d.problem("%s.minDomains: want at least 1, and whenUnsatisfiable: DoNotSchedule", at)
		}
		if c.LabelSelector == nil {
			d.problem("%s.labelSelector: without it the constraint counts no pod; the pods have the label app: cinder-csi-controller", at)
		}
		d.checkSelector(at+".labelSelector", c.LabelSelector)
		d.checkMatchLabelKeys(at+".matchLabelKeys", c)
		if slices.ContainsFunc(constraints[:i], func(o v1alpha1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			d.problem("%s: an earlier constraint has the same topologyKey and whenUnsatisfiable", at)
		}
	}
}

func (d *decider) checkMatchLabelKeys(path string, c v1alpha1.TopologySpreadConstraint) {
	if c.LabelSelector == nil {
		return
	}
	for i, key := range c.MatchLabelKeys {
		d.problemsOf(item(path, i), key, content.IsLabelKey(key))
		if _, twice := c.LabelSelector.MatchLabels[key]; twice {
			d.problem("%s: labelSelector has %s too; keep one", item(path, i), key)
		}
	}
}
