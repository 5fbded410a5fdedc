package v1alpha1

import "github.com/cinder-csi/cinder-csi/driver/contract"

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
	// Size is the size of the cluster, by nodes and volumes; see ClusterSizes.
	Size string `json:"size,omitempty"`
	// KubernetesVersion is the lowest minor that is served, "1.32". Decides which API versions and fields are emitted.
	KubernetesVersion string         `json:"kubernetesVersion,omitempty"`
	Namespaces        Namespaces     `json:"namespaces,omitzero"`
	ClusterID         string         `json:"clusterID,omitempty"` // default metadata.name; marks ownership in Cinder metadata
	Driver            Driver         `json:"driver,omitzero"`
	OpenShift         OpenShift      `json:"openshift,omitzero"`
	Credentials       Credentials    `json:"credentials,omitzero"`
	Topology          Topology       `json:"topology,omitzero"`
	StorageClasses    StorageClasses `json:"storageClasses,omitzero"`
	// VolumeAttachLimit is "auto" (each node computes its own limit) or a number.
	VolumeAttachLimit IntOrAuto `json:"volumeAttachLimit,omitempty"`
	Snapshots         Snapshots `json:"snapshots,omitzero"`
	// AttributesClasses are the VolumeAttributesClasses, by name.
	AttributesClasses map[string]AttributesClass `json:"attributesClasses,omitempty"`
	NodeLifecycle     NodeLifecycle              `json:"nodeLifecycle,omitzero"`
	Monitoring        Monitoring                 `json:"monitoring,omitzero"`
	DriftCheck        DriftCheck                 `json:"driftCheck,omitzero"`
	NetworkPolicy     NetworkPolicy              `json:"networkPolicy,omitzero"`
	TrustedCA         bool                       `json:"trustedCA,omitempty"`
	Images            Images                     `json:"images,omitzero"`
	Roles             Roles                      `json:"roles,omitzero"`
	// NodePools are nodes with other settings, each with a DaemonSet of its own.
	NodePools  []NodePool `json:"nodePools,omitempty"`
	HyperShift HyperShift `json:"hypershift,omitzero"`
}

// IntOrAuto is a whole number as decimal digits, or "auto". YAML may give it as either.
type IntOrAuto string

// IntOrPercent is a whole number of pods, or a share of them such as "10%". YAML may give a number as either.
type IntOrPercent string

// Namespaces of the two roles. hypershift: Controller is the hosted control plane's, Node the guest's (leases too).
type Namespaces struct {
	Controller string `json:"controller,omitempty"`
	Node       string `json:"node,omitempty"`
}

// Sources of a node's server ID and zone.
const (
	MetadataService = "metadataService"
	ConfigDrive     = "configDrive"
)

// ExtraArgs are further flags of the driver, for each role.
type ExtraArgs struct {
	Controller []string `json:"controller,omitempty"`
	Node       []string `json:"node,omitempty"`
}

// OpenShift settings. Coexistence is sideBySide (default: own driver name and objects) or adopt (upstream's).
type OpenShift struct {
	Coexistence string `json:"coexistence,omitempty"`
	// ControlPlaneTopology is status.controlPlaneTopology of the cluster's Infrastructure; it decides the controller's replicas and nodes.
	ControlPlaneTopology string `json:"controlPlaneTopology,omitempty"`
	// ClusterNetworks are the service and pod networks of the cluster's Network. The driver reaches them without a proxy.
	ClusterNetworks []string `json:"clusterNetworks,omitempty"`
	// Monitoring says which of OpenShift's two Prometheus servers reads the metrics: platform (default) or userWorkload.
	Monitoring string `json:"monitoring,omitempty"`
}

// Values of status.controlPlaneTopology of OpenShift's Infrastructure.
const (
	SingleReplica          = "SingleReplica"
	HighlyAvailable        = "HighlyAvailable"
	HighlyAvailableArbiter = "HighlyAvailableArbiter"
	DualReplica            = "DualReplica"
	External               = "External"
)

// OpenShift's Prometheus servers.
const (
	PlatformMonitoring     = "platform"
	UserWorkloadMonitoring = "userWorkload"
)

// Coexistence values.
const (
	SideBySide = "sideBySide"
	Adopt      = "adopt"
)

// Credentials say where the driver finds its clouds.yaml. The generator never sees a secret.
type Credentials struct {
	SecretName string `json:"secretName,omitempty"`
	Key        string `json:"key,omitempty"`   // default clouds.yaml
	Cloud      string `json:"cloud,omitempty"` // default openstack: the entry in that file
	// Request is whether a CredentialsRequest asks OpenShift's Cloud Credential Operator for the Secret: auto (default), enabled or disabled.
	Request     string `json:"request,omitempty"`
	CABundle    string `json:"caBundle,omitempty"`    // PEM of the cloud's CA; public, embedded
	CAConfigMap string `json:"caConfigMap,omitempty"` // an existing ConfigMap beside the controller with key ca.pem, instead of CABundle
	CAKey       string `json:"caKey,omitempty"`       // a key of the Secret with the certificates, instead of both; without it cacert counts where the Secret has it
}

// Topology settings. Mode is auto (default), enabled or disabled. ZoneMap maps compute zones to volume zones.
type Topology struct {
	Mode    string            `json:"mode,omitempty"`
	ZoneMap map[string]string `json:"zoneMap,omitempty"`
}

// Values of settings that can be left to the generator.
const (
	Auto     = "auto"
	Enabled  = "enabled"
	Disabled = "disabled"
	Strict   = "strict"
)

// StorageClasses settings. Include and Exclude are globs over type names. Default is auto, none, or a type's id or name.
type StorageClasses struct {
	Include    []string `json:"include,omitempty"`
	Exclude    []string `json:"exclude,omitempty"`
	Default    string   `json:"default,omitempty"`
	NamePrefix string   `json:"namePrefix,omitempty"`
	// VolumeBindingMode is when the volume of a claim is created: WaitForFirstConsumer (default) or Immediate.
	VolumeBindingMode string `json:"volumeBindingMode,omitempty"`
	// AllowVolumeExpansion is whether claims may grow; default true.
	AllowVolumeExpansion *bool                    `json:"allowVolumeExpansion,omitempty"`
	Overrides            map[string]ClassOverride `json:"overrides,omitempty"` // by type id or name
	Extra                []ExtraClass             `json:"extra,omitempty"`
}

// Binding modes.
const (
	WaitForFirstConsumer = "WaitForFirstConsumer"
	Immediate            = "Immediate"
)

// ClassOverride changes what is emitted for one type.
type ClassOverride struct {
	Name                 string            `json:"name,omitempty"`
	ReclaimPolicy        string            `json:"reclaimPolicy,omitempty"`
	VolumeBindingMode    string            `json:"volumeBindingMode,omitempty"`
	AllowVolumeExpansion *bool             `json:"allowVolumeExpansion,omitempty"`
	FSType               string            `json:"fsType,omitempty"`
	MountOptions         []string          `json:"mountOptions,omitempty"`
	Parameters           map[string]string `json:"parameters,omitempty"`
	Annotations          map[string]string `json:"annotations,omitempty"`
}

// ExtraClass is one more class; Type is a type's id or name, empty for the cloud's default type. Name is required.
type ExtraClass struct {
	Type          string `json:"type,omitempty"`
	ClassOverride `json:",inline"`
}

// Snapshots settings; Enabled defaults to true. Backup is whether there is a VolumeSnapshotClass that makes backups: auto (default) emits
// one where the cloud has the backup service, else enabled or disabled.
type Snapshots struct {
	Enabled *bool  `json:"enabled,omitempty"`
	Backup  string `json:"backup,omitempty"`
	// Classes are further VolumeSnapshotClasses, by name.
	Classes map[string]SnapshotClass `json:"classes,omitempty"`
}

// OwnDriverName is the driver's name beside OpenShift's built-in driver, which holds upstream's.
const OwnDriverName = "cinder-csi.io"

// ClusterPrefix begins the names of what a bundle has in the whole cluster: ClusterRoles, their bindings and VolumeSnapshotClasses. It is the
// driver name where that is not a default one, because another bundle of the cluster has another driver name. Both defaults have the same
// prefix: on OpenShift one takes the place of the other.
func ClusterPrefix(driver string) string {
	if driver == contract.DriverName || driver == OwnDriverName {
		return "cinder-csi"
	}
	return driver
}

// SnapshotClassNames are the VolumeSnapshotClasses that a bundle has by itself: one for snapshots, and one for backups.
func SnapshotClassNames(driver string) (snapshots, backups string) {
	prefix := ClusterPrefix(driver)
	return prefix, prefix + "-backup"
}

// SnapshotClass is a further VolumeSnapshotClass.
type SnapshotClass struct {
	DeletionPolicy string            `json:"deletionPolicy,omitempty"` // Delete (default) or Retain: what happens in Cinder after the VolumeSnapshot was deleted
	Default        bool              `json:"default,omitempty"`        // it is the default of the driver in place of the class of the bundle
	Parameters     map[string]string `json:"parameters,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
}

// AttributesClass is a VolumeAttributesClass: what a claim may change of its volume. At least one key is required.
type AttributesClass struct {
	Type     string            `json:"type,omitempty"`     // a volume type's id or name
	Policy   string            `json:"policy,omitempty"`   // whether Cinder may copy the volume to another backend for the type: never (default) or on-demand
	Metadata map[string]string `json:"metadata,omitempty"` // of the volume in Cinder
}

// NodeLifecycle is what the driver does when nodes come and go. Both are false by default, because each needs rights in the cluster.
type NodeLifecycle struct {
	// StartupTaint is whether the controller removes the taint DRIVER-NAME/agent-not-ready from nodes where the driver is ready.
	StartupTaint bool `json:"startupTaint,omitempty"`
	// DrainHook is whether the driver of a node that is being drained stays until the volumes there are detached.
	DrainHook bool `json:"drainHook,omitempty"`
}

// Monitoring settings. Kind is none (default), PodMonitor or ServiceMonitor.
type Monitoring struct {
	Kind       string `json:"kind,omitempty"`
	Alerts     bool   `json:"alerts,omitempty"`     // a PrometheusRule
	Dashboards bool   `json:"dashboards,omitempty"` // a ConfigMap with Grafana dashboards
	// RunbookBase is the address of the directory that has docs/, without a slash at the end. Alerts link to their pages below it.
	RunbookBase string `json:"runbookBase,omitempty"`
	TLS         TLS    `json:"tls,omitzero"`
	// NodePorts is the first of three consecutive ports of the host on which the pods of the nodes listen, or auto (default).
	NodePorts IntOrAuto `json:"nodePorts,omitempty"`
	// Labels are further labels of the objects of the Prometheus operator.
	Labels map[string]string `json:"labels,omitempty"`
}

// TLS is how the controller of an OpenShift cluster serves metrics; default OpenShift's profile Intermediate.
type TLS struct {
	MinVersion   string   `json:"minVersion,omitempty"`   // VersionTLS10 to VersionTLS13
	CipherSuites []string `json:"cipherSuites,omitempty"` // by their IANA names; without effect on TLS 1.3
}

// Kinds of monitoring objects.
const (
	PodMonitor     = "PodMonitor"
	ServiceMonitor = "ServiceMonitor"
)

// DriftCheck settings. Schedule is a CronJob's: "0 6 * * *" or "@daily"; empty means no drift check.
type DriftCheck struct {
	Schedule string `json:"schedule,omitempty"`
}

// NetworkPolicy settings.
type NetworkPolicy struct {
	Enabled        bool     `json:"enabled,omitempty"`
	OpenStackCIDRs []string `json:"openstackCIDRs,omitempty"`
	APIServerCIDRs []string `json:"apiServerCIDRs,omitempty"`
	// APIServerPorts are those on which the API server listens, in place of 6443.
	APIServerPorts []int `json:"apiServerPorts,omitempty"`
	// DNSCIDRs are addresses that answer DNS and are not those of a pod, such as NodeLocal DNSCache's.
	DNSCIDRs []string `json:"dnsCIDRs,omitempty"`
	// MetricsNamespaces are those whose pods may read the controller's metrics.
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`
}

// Ways for the sidecars of a hosted control plane to reach the guest cluster.
const (
	AdminKubeconfig     = "adminKubeconfig"
	ServiceAccountToken = "serviceAccountToken"
)

// HyperShift settings. KubeconfigSecret defaults to service-network-admin-kubeconfig. Platform is the hosted cluster's, if known.
type HyperShift struct {
	KubeconfigSecret string `json:"kubeconfigSecret,omitempty"`
	InfraID          string `json:"infraID,omitempty"`
	Platform         string `json:"platform,omitempty"`
	// GuestAccess is how the sidecars reach the guest: serviceAccountToken (default) or adminKubeconfig.
	GuestAccess string `json:"guestAccess,omitempty"`
}
