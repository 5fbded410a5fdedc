package v1alpha1

// Roles are the settings of the two roles' pods.
type Roles struct {
	Controller RolePods `json:"controller,omitzero"`
	Node       RolePods `json:"node,omitzero"`
}

// RolePods is how one role's pods run.
type RolePods struct {
	Images                    Images                     `json:"images,omitzero"` // of this role alone; wins over spec.images
	Proxy                     Proxy                      `json:"proxy,omitzero"`
	NodeSelector              map[string]string          `json:"nodeSelector,omitzero"` // empty: any node
	Tolerations               []Toleration               `json:"tolerations,omitzero"`  // empty: none
	Affinity                  *Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	PodLabels                 map[string]string          `json:"podLabels,omitempty"`
	PodAnnotations            map[string]string          `json:"podAnnotations,omitempty"`
	Env                       map[string]string          `json:"env,omitempty"` // of every container
	ImagePullSecrets          []string                   `json:"imagePullSecrets,omitempty"`
	PriorityClassName         string                     `json:"priorityClassName,omitempty"`
	RunAsUser                 *int64                     `json:"runAsUser,omitempty"`
	Replicas                  *int                       `json:"replicas,omitempty"`
	Resources                 map[string]Resources       `json:"resources,omitempty"` // by container
	UpdateStrategy            UpdateStrategy             `json:"updateStrategy,omitzero"`
}

// Proxy is the HTTP proxy of calls to OpenStack.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"`
}

// Resources are Kubernetes' resource requests and limits, by resource name.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// UpdateStrategy is the strategy of the controller's Deployment or of the node's DaemonSet.
type UpdateStrategy struct {
	Type          string        `json:"type,omitempty"` // RollingUpdate (default); Recreate for the controller; OnDelete for the node
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitzero"`
}

// RollingUpdate says how many pods an update may replace at a time.
type RollingUpdate struct {
	MaxUnavailable IntOrPercent `json:"maxUnavailable,omitempty"`
	MaxSurge       IntOrPercent `json:"maxSurge,omitempty"`
}
