package v1alpha1

// Distribution is the generator's configuration. Every key is optional; an absent key means the default named in its comment,
// which may differ between targets.
type Distribution struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata,omitzero"`
	Spec       Spec     `json:"spec,omitzero"`
}

// Metadata names a Distribution.
type Metadata struct {
	Name string `json:"name,omitempty"`
}

// Spec is what is configured.
type Spec struct {
	// KubernetesVersion is the lowest minor that is served, "1.32". Decides which API versions and fields are emitted.
	KubernetesVersion string         `json:"kubernetesVersion,omitempty"`
	Namespaces        Namespaces     `json:"namespaces,omitzero"`
	ClusterID         string         `json:"clusterID,omitempty"` // default metadata.name; marks ownership in Cinder metadata
	Driver            Driver         `json:"driver,omitzero"`
	OpenShift         OpenShift      `json:"openshift,omitzero"`
	Credentials       Credentials    `json:"credentials,omitzero"`
	Topology          Topology       `json:"topology,omitzero"`
	StorageClasses    StorageClasses `json:"storageClasses,omitzero"`
	// VolumeAttachLimit is "auto" (each node computes its own; nothing is emitted) or a number.
	VolumeAttachLimit IntOrAuto        `json:"volumeAttachLimit,omitempty"`
	Snapshots         Snapshots        `json:"snapshots,omitzero"`
	Monitoring        Monitoring       `json:"monitoring,omitzero"`
	NetworkPolicy     NetworkPolicy    `json:"networkPolicy,omitzero"`
	TrustedCA         bool             `json:"trustedCA,omitempty"`
	Images            map[string]Image `json:"images,omitempty"` // by role or sidecar: driver, provisioner, attacher, resizer, snapshotter, registrar, livenessprobe
	Planes            Planes           `json:"planes,omitzero"`
	HyperShift        HyperShift       `json:"hypershift,omitzero"`
}

// IntOrAuto is a whole number as decimal digits, or "auto". YAML may give it as either.
type IntOrAuto string

// Namespaces of the two roles. hypershift: Controller is the hosted control plane's, Node the guest's (leases too).
type Namespaces struct {
	Controller string `json:"controller,omitempty"`
	Node       string `json:"node,omitempty"`
}

// Driver settings.
type Driver struct {
	Name     string `json:"name,omitempty"` // default by target and coexistence
	LogLevel *int   `json:"logLevel,omitempty"`
	// PVCAnnotations is whether the driver reads scheduler hints from claims; default true, but false on hypershift.
	PVCAnnotations *bool `json:"pvcAnnotations,omitempty"`
}

// OpenShift settings. Coexistence is sideBySide (default: own driver name and objects) or adopt (upstream's).
type OpenShift struct {
	Coexistence string `json:"coexistence,omitempty"`
}

// Coexistence values.
const (
	SideBySide = "sideBySide"
	Adopt      = "adopt"
)

// Credentials say where the driver finds its clouds.yaml. The generator never sees a secret.
type Credentials struct {
	SecretName string `json:"secretName,omitempty"`
	Key        string `json:"key,omitempty"`      // default clouds.yaml
	Cloud      string `json:"cloud,omitempty"`    // default openstack: the entry in that file
	CABundle   string `json:"caBundle,omitempty"` // PEM of the cloud's CA; public, embedded
}

// Topology settings. Mode is auto (default), enabled or disabled. ZoneMap maps compute zones to volume zones.
type Topology struct {
	Mode    string            `json:"mode,omitempty"`
	ZoneMap map[string]string `json:"zoneMap,omitempty"`
}

// Topology modes.
const (
	Auto     = "auto"
	Enabled  = "enabled"
	Disabled = "disabled"
)

// StorageClasses settings. Include and Exclude are globs over type names. Default is auto, none, or a type's id or name.
type StorageClasses struct {
	Include    []string                 `json:"include,omitempty"`
	Exclude    []string                 `json:"exclude,omitempty"`
	Default    string                   `json:"default,omitempty"`
	NamePrefix string                   `json:"namePrefix,omitempty"`
	Overrides  map[string]ClassOverride `json:"overrides,omitempty"` // by type id or name
	Extra      []ExtraClass             `json:"extra,omitempty"`
}

// ClassOverride changes what is emitted for one type.
type ClassOverride struct {
	Name          string            `json:"name,omitempty"`
	ReclaimPolicy string            `json:"reclaimPolicy,omitempty"`
	FSType        string            `json:"fsType,omitempty"`
	MountOptions  []string          `json:"mountOptions,omitempty"`
	Parameters    map[string]string `json:"parameters,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// ExtraClass is one more class; Type is a type's id or name, empty for the cloud's default type. Name is required.
type ExtraClass struct {
	Type          string `json:"type,omitempty"`
	ClassOverride `json:",inline"`
}

// Snapshots settings; Enabled defaults to true.
type Snapshots struct {
	Enabled *bool `json:"enabled,omitempty"`
}

// Monitoring settings. Kind is none (default), PodMonitor or ServiceMonitor.
type Monitoring struct {
	Kind string `json:"kind,omitempty"`
}

// NetworkPolicy settings.
type NetworkPolicy struct {
	Enabled        bool     `json:"enabled,omitempty"`
	OpenStackCIDRs []string `json:"openstackCIDRs,omitempty"`
	APIServerCIDRs []string `json:"apiServerCIDRs,omitempty"`
	// MetricsNamespaces are those whose pods may read the controller's metrics.
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`
}

// Image overrides parts of one image's reference.
type Image struct {
	Registry   string `json:"registry,omitempty"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"`
}

// Planes are the settings of the two roles' pods.
type Planes struct {
	Controller Plane `json:"controller,omitzero"`
	Node       Plane `json:"node,omitzero"`
}

// Plane is how one role's pods run. Resources is by container name.
type Plane struct {
	Images           map[string]Image     `json:"images,omitempty"`
	Proxy            Proxy                `json:"proxy,omitzero"`
	NodeSelector     map[string]string    `json:"nodeSelector,omitempty"`
	Tolerations      []Toleration         `json:"tolerations,omitempty"`
	PodLabels        map[string]string    `json:"podLabels,omitempty"`
	ImagePullSecrets []string             `json:"imagePullSecrets,omitempty"`
	RunAsUser        *int64               `json:"runAsUser,omitempty"`
	Replicas         *int                 `json:"replicas,omitempty"`
	Resources        map[string]Resources `json:"resources,omitempty"`
}

// Proxy is the HTTP proxy of calls to OpenStack.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"`
}

// Toleration is Kubernetes' toleration.
type Toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          string `json:"operator,omitempty"`
	Value             string `json:"value,omitempty"`
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// Resources are Kubernetes' resource requests and limits, by resource name.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// HyperShift settings. KubeconfigSecret defaults to service-network-admin-kubeconfig. Platform is the hosted cluster's, if known.
type HyperShift struct {
	KubeconfigSecret string `json:"kubeconfigSecret,omitempty"`
	InfraID          string `json:"infraID,omitempty"`
	Platform         string `json:"platform,omitempty"`
}
