package v1alpha1

// The types of this file are Kubernetes' own, of core/v1, with the fields that Kubernetes 1.27 and later serve. They are written out so that
// a mistake in a configuration is found, named with its line, and described by the schema.

// Toleration is Kubernetes' toleration.
type Toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          string `json:"operator,omitempty"`
	Value             string `json:"value,omitempty"`
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// Affinity is Kubernetes' affinity.
type Affinity struct {
	NodeAffinity    *NodeAffinity `json:"nodeAffinity,omitempty"`
	PodAffinity     *PodAffinity  `json:"podAffinity,omitempty"`
	PodAntiAffinity *PodAffinity  `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity is about the labels of nodes.
type NodeAffinity struct {
	Required  *NodeSelector       `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []PreferredNodeTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector is satisfied by a node that satisfies one of its terms.
type NodeSelector struct {
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms,omitempty"`
}

// PreferredNodeTerm adds its weight to the nodes that satisfy the term.
type PreferredNodeTerm struct {
	Weight     int              `json:"weight,omitempty"`
	Preference NodeSelectorTerm `json:"preference,omitzero"`
}

// NodeSelectorTerm is satisfied by a node that satisfies all of its requirements.
type NodeSelectorTerm struct {
	MatchExpressions []NodeRequirement `json:"matchExpressions,omitempty"`
	MatchFields      []NodeRequirement `json:"matchFields,omitempty"`
}

// NodeRequirement is a condition on a label or field of a node.
type NodeRequirement struct {
	Key      string   `json:"key,omitempty"`
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// PodAffinity is about the pods that run already; the same type serves anti-affinity.
type PodAffinity struct {
	Required  []PodAffinityTerm  `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []PreferredPodTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PreferredPodTerm adds its weight to the nodes that satisfy the term.
type PreferredPodTerm struct {
	Weight          int             `json:"weight,omitempty"`
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm,omitzero"`
}

// PodAffinityTerm selects pods, and the topology domain that counts as one place.
type PodAffinityTerm struct {
	LabelSelector     *LabelSelector `json:"labelSelector,omitempty"`
	Namespaces        []string       `json:"namespaces,omitempty"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	TopologyKey       string         `json:"topologyKey,omitempty"`
}

// TopologySpreadConstraint spreads the pods over topology domains.
type TopologySpreadConstraint struct {
	MaxSkew            int            `json:"maxSkew,omitempty"`
	TopologyKey        string         `json:"topologyKey,omitempty"`
	WhenUnsatisfiable  string         `json:"whenUnsatisfiable,omitempty"`
	LabelSelector      *LabelSelector `json:"labelSelector,omitempty"`
	MinDomains         *int           `json:"minDomains,omitempty"`
	NodeAffinityPolicy string         `json:"nodeAffinityPolicy,omitempty"`
	NodeTaintsPolicy   string         `json:"nodeTaintsPolicy,omitempty"`
	MatchLabelKeys     []string       `json:"matchLabelKeys,omitempty"`
}

// LabelSelector selects objects by their labels.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels,omitempty"`
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is a condition on a label.
type LabelRequirement struct {
	Key      string   `json:"key,omitempty"`
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}
