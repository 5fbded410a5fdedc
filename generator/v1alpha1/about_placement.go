package v1alpha1

const (
	aboutRequired  = "Rules that must hold when a pod is scheduled."
	aboutPreferred = "Rules that the scheduler prefers to hold."
	aboutSelector  = "Selects pods by their labels."
)

var placementAbouts = map[string]about{
	"Toleration.key":               {"The taint's key.", "every key", "an invalid label key; no key without operator Exists"},
	"Toleration.operator":          {"How the taint is compared: its value too, or its key alone.", "Equal", ""},
	"Toleration.value":             {"The taint's value, for operator Equal.", "empty", "a value beside operator Exists"},
	"Toleration.effect":            {"The taint's effect.", "every effect", ""},
	"Toleration.tolerationSeconds": {"How long a NoExecute taint is tolerated.", "without end", "beside another effect"},

	"Affinity.nodeAffinity":    {"Which nodes the pods may run on.", "none", ""},
	"Affinity.podAffinity":     {"Which pods the pods run beside.", "none", ""},
	"Affinity.podAntiAffinity": {"Which pods the pods do not run beside.", "none", ""},

	"NodeAffinity.requiredDuringSchedulingIgnoredDuringExecution":  {aboutRequired, "none", ""},
	"NodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": {aboutPreferred, "none", ""},
	"PodAffinity.requiredDuringSchedulingIgnoredDuringExecution":   {aboutRequired, "none", ""},
	"PodAffinity.preferredDuringSchedulingIgnoredDuringExecution":  {aboutPreferred, "none", ""},

	"NodeSelector.nodeSelectorTerms":    {"A node must satisfy one of these terms.", "none", "no term"},
	"NodeSelectorTerm.matchExpressions": {"Conditions on the node's labels.", "none", ""},
	"NodeSelectorTerm.matchFields":      {"Conditions on the node's fields; Kubernetes takes metadata.name alone.", "none", "another key"},
	"NodeRequirement.key":               {"The label's key.", "none", "an invalid label key"},
	"NodeRequirement.operator":          {"How the label is compared.", "none", "no operator"},
	"NodeRequirement.values":            {"The values it is compared with.", "none", "a number of values that the operator does not take"},
	"PreferredNodeTerm.weight":          {"How much the term counts, 1 to 100.", "none", "any other number"},
	"PreferredNodeTerm.preference":      {Meaning: "The term."},
	"PreferredPodTerm.weight":           {"How much the term counts, 1 to 100.", "none", "any other number"},
	"PreferredPodTerm.podAffinityTerm":  {Meaning: "The term."},
	"PodAffinityTerm.labelSelector":     {aboutSelector, "no pod", ""},
	"PodAffinityTerm.namespaces":        {"The namespaces of those pods.", "the pod's own", "an invalid namespace name"},
	"PodAffinityTerm.namespaceSelector": {"Selects further namespaces by their labels.", "none", ""},
	"PodAffinityTerm.topologyKey":       {"The label of nodes whose value is one place.", "none", "no key"},

	"TopologySpreadConstraint.maxSkew":            {"How far the number of pods may differ between two places.", "none", "less than 1"},
	"TopologySpreadConstraint.topologyKey":        {"The label of nodes whose value is one place.", "none", "no key"},
	"TopologySpreadConstraint.whenUnsatisfiable":  {"What happens to a pod that fits no place.", "none", "no value"},
	"TopologySpreadConstraint.labelSelector":      {aboutSelector + " The controller's pods have the label app: cinder-csi-controller.", "none", "no selector"},
	"TopologySpreadConstraint.minDomains":         {"The fewest places, with DoNotSchedule.", "1", "less than 1; beside ScheduleAnyway"},
	"TopologySpreadConstraint.nodeAffinityPolicy": {"Whether nodes that the pod's node affinity excludes count.", "Honor", ""},
	"TopologySpreadConstraint.nodeTaintsPolicy":   {"Whether nodes with taints that the pod does not tolerate count.", "Ignore", ""},
	"TopologySpreadConstraint.matchLabelKeys":     {"Labels of the pod itself that are added to the selector.", "none", "a label that the selector has"},

	"LabelSelector.matchLabels":      {"Labels that the object must have.", "none", "invalid labels"},
	"LabelSelector.matchExpressions": {"Conditions on its labels.", "none", ""},
	"LabelRequirement.key":           {"The label's key.", "none", "an invalid label key"},
	"LabelRequirement.operator":      {"How the label is compared.", "none", "no operator"},
	"LabelRequirement.values":        {"The values it is compared with.", "none", "a number of values that the operator does not take"},
}
