// Package plan decides. Decide is a pure function of an inventory and a configuration: no time, network, randomness or file ever
// reaches it. Every value that it emits is a Decision: the value, one sentence of reason and the facts that it rests on. A Decision
// also says whether a person or a rule chose the value. Decisions rest only on what a project member can read.
package plan

import (
	"encoding/json"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Source says who chose a value.
type Source string

// The sources.
const (
	FromConfig Source = "config"
	Inferred   Source = "inferred"
	Default    Source = "default"
)

// Decision is a value with its grounds. What is rendered from the value carries the id.
type Decision[T any] struct {
	ID     string // public: "topology.enabled"
	Value  T
	Reason string               // one sentence a person understands
	Facts  []v1alpha1.NamedFact // what in the inventory it rests on
	Source Source
}

// Result is everything a bundle is rendered from. Package bundle reads this and nothing else.
type Result struct {
	Generator string // version
	Simulated bool
	Cloud     v1alpha1.Cloud
	Target    v1alpha1.Target
	Format    v1alpha1.Format
	Config    v1alpha1.Spec   // normalised
	Given     *v1alpha1.Given // as configured, if Config does not tell

	// The decisions, in the order of plan.yaml. The tag is the public id. Where a field holds several, their ids begin with it.
	OpenShift           Decision[bool]                      `id:"target.openshift"`          // the platform's own rules apply: security context constraints, its leases and priorities
	Hosted              Decision[bool]                      `id:"target.hostedControlPlane"` // the controller runs in a hosted control plane, beside the guest cluster that it serves
	Adopted             Decision[bool]                      `id:"openshift.adopted"`         // the bundle takes over from OpenShift's built-in driver
	KubernetesVersion   Decision[string]                    `id:"kubernetesVersion"`         // the lowest minor that is served
	Size                Decision[string]                    `id:"size"`                      // of the cluster
	Driver              Decision[string]                    `id:"driver.name"`
	TopologyKey         Decision[string]                    `id:"driver.topologyKey"`
	Settings            []Decision[Setting]                 `id:""`                // in the order of the table
	Metadata            Decision[[]string]                  `id:"driver.metadata"` // where a node reads its server ID and zone, in this order
	SELinux             Decision[bool]                      `id:"driver.seLinux"`  // kubelet passes SELinux contexts, and the driver sees the SELinux of the host
	CSIDriver           Decision[CSIDriver]                 `id:"csiDriver"`
	PVCAnnotations      Decision[bool]                      `id:"driver.pvcAnnotations"`      // the driver's container gets the pod's token
	StartupTaint        Decision[bool]                      `id:"nodeLifecycle.startupTaint"` // the controller removes the start-up taint of nodes, which needs a right to change them
	DrainHook           Decision[bool]                      `id:"nodeLifecycle.drainHook"`    // the driver of a drained node stays until its volumes are detached
	ControllerNamespace Decision[string]                    `id:"namespaces.controller"`
	NodeNamespace       Decision[string]                    `id:"namespaces.node"`
	ClusterID           Decision[string]                    `id:"clusterID"`
	Credentials         Decision[Credentials]               `id:"credentials"`
	CredentialsRequest  Decision[bool]                      `id:"credentials.request"`  // OpenShift's Cloud Credential Operator fills the Secret
	CABundle            Decision[string]                    `id:"credentials.caBundle"` // PEM; empty: the system's roots
	CASource            Decision[CASource]                  `id:"credentials.caConfigMap"`
	CAKey               Decision[string]                    `id:"credentials.caKey"`           // empty: the key cacert, where the Secret has it
	TrustedCA           Decision[bool]                      `id:"trustedCA"`                   // a ConfigMap that OpenShift fills holds the certificates
	KubeconfigSecret    Decision[string]                    `id:"hypershift.kubeconfigSecret"` // of a hosted control plane; empty elsewhere
	GuestAccess         Decision[string]                    `id:"hypershift.guestAccess"`      // how the sidecars of a hosted control plane reach the guest; empty elsewhere
	Leases              Decision[Leases]                    `id:"leases"`
	Attacher            Decision[v1alpha1.AttacherSettings] `id:"attacher"`
	Topology            Decision[bool]                      `id:"topology.enabled"`                    // volumes and nodes carry zones
	ZoneMap             Decision[map[string]string]         `id:"topology.zoneMap"`                    // compute zone to volume zone, where the names differ
	BindingMode         Decision[string]                    `id:"storageClasses.volumeBindingMode"`    // of every class
	ReclaimPolicy       Decision[string]                    `id:"storageClasses.reclaimPolicy"`        // of the classes that no override changes
	Expansion           Decision[bool]                      `id:"storageClasses.allowVolumeExpansion"` // of every class
	StorageClasses      []Decision[StorageClass]            `id:"storageClass."`                       // sorted by name
	AttributesClasses   []Decision[AttributesClass]         `id:"attributesClass."`                    // sorted by name
	DefaultClass        Decision[string]                    `id:"defaultClass"`                        // class name; empty: none
	SnapshotClass       Decision[SnapshotClass]             `id:"snapshotClass"`
	BackupClass         Decision[BackupClass]               `id:"snapshotClass.backup"`
	SnapshotClasses     []Decision[FurtherSnapshotClass]    `id:"snapshotClasses."`                 // sorted by name
	CloudConf           Decision[string]                    `id:"cloudConf"`                        // the controller's cloud.conf without its [Zone] sections, which are ZoneMap's
	AttachLimit         Decision[string]                    `id:"volumeAttachLimit"`                // auto: each node computes its own
	LimitRefresh        Decision[int]                       `id:"volumeAttachLimit.refreshSeconds"` // seconds after which kubelet asks a node for its limit again; 0: never
	Monitoring          Decision[string]                    `id:"monitoring.kind"`                  // none, PodMonitor or ServiceMonitor
	Alerts              Decision[bool]                      `id:"monitoring.alerts"`                // alerts for Prometheus; only with Monitoring
	Dashboards          Decision[bool]                      `id:"monitoring.dashboards"`            // dashboards for Grafana; only with Monitoring
	RunbookBase         Decision[string]                    `id:"monitoring.runbookBase"`           // address of the directory with docs/; empty: alerts have no address
	MonitoringLabels    Decision[map[string]string]         `id:"monitoring.labels"`                // of the objects of the Prometheus operator
	NodePorts           Decision[int]                       `id:"monitoring.nodePorts"`             // the first of three: health, registrar, metrics
	MetricsTLS          Decision[MetricsTLS]                `id:"monitoring.tls"`                   // of the controller's pods
	PlatformMonitoring  Decision[bool]                      `id:"monitoring.platform"`              // OpenShift's own Prometheus reads the metrics
	DriftCheck          Decision[DriftCheck]                `id:"driftCheck"`
	NetworkPolicy       Decision[NetworkPolicy]             `id:"networkPolicy"`
	Images              map[string]Decision[string]         `id:"images."` // by sidecar: REGISTRY/REPOSITORY[:TAG][@DIGEST], for the roles without one of their own
	Controller          Workload                            `id:"controller."`
	Node                Workload                            `id:"node."`
	NodePools           []Decision[NodePool]                `id:"nodePools."` // sorted by name

	Warnings []string // follow from inventory and configuration alone; may be emitted
	Failures []string // those of Warnings that say that something fails. No document marks them, except that of a drift check, which has no others
	Notices  []string // momentary, for the terminal only: never emitted, or an outage would be drift
}

// CSIDriver are the fields of the CSIDriver that Kubernetes cannot change in place. The base holds them; the guard compares them.
type CSIDriver struct {
	AttachRequired       bool     `json:"attachRequired"`
	VolumeLifecycleModes []string `json:"volumeLifecycleModes"`
}

// Credentials name the Secret with the credentials; the generator never sees its content.
type Credentials struct {
	SecretName string `json:"secretName"`
	Key        string `json:"key"`   // the Secret's key that holds clouds.yaml
	Cloud      string `json:"cloud"` // the entry in it
	// Owner is what writes the Secret; empty: a person does.
	Owner string `json:"owner,omitempty"`
}

// CASource is where the controller's pods find the CA certificates of OpenStack's endpoints; empty: nowhere.
type CASource struct {
	ConfigMap string `json:"configMap,omitempty"`
	Key       string `json:"key,omitempty"`
}

// MetricsTLS is how the controller's pods serve their metrics: without TLS when it is not enabled.
type MetricsTLS struct {
	Enabled      bool   `json:"enabled"`
	MinVersion   string `json:"minVersion,omitempty"`
	CipherSuites string `json:"cipherSuites,omitempty"` // comma-separated
}

// Leases say how long a sidecar holds its leadership without an answer of the API server, as Go durations.
type Leases struct {
	LeaseDuration string `json:"leaseDuration"`
	RenewDeadline string `json:"renewDeadline"`
	RetryPeriod   string `json:"retryPeriod"`
}

// StorageClass is one class. Its JSON names fields as Kubernetes does; the guard compares those that cannot be changed there.
type StorageClass struct {
	Name                 string            `json:"-"` // it is in the decision's id
	VolumeType           VolumeType        `json:"volumeType,omitzero"`
	Provisioner          string            `json:"provisioner"`
	Parameters           map[string]string `json:"parameters"`
	ReclaimPolicy        string            `json:"reclaimPolicy"`
	VolumeBindingMode    string            `json:"volumeBindingMode"`
	MountOptions         []string          `json:"mountOptions,omitempty"`
	Annotations          map[string]string `json:"annotations,omitempty"` // people's own; default-class and prune guards are the bundle's to add
	Default              bool              `json:"-"`                     // on at most one; decision defaultClass says which
	AllowVolumeExpansion bool              `json:"allowVolumeExpansion"`
	AllowedZones         []string          `json:"allowedZones,omitempty"` // compute zones its type can serve; empty: all
	// Whether the configuration gives this class the value. Otherwise it changes with the decision for all classes.
	OwnReclaimPolicy bool `json:"ownReclaimPolicy,omitempty"`
	OwnBindingMode   bool `json:"ownVolumeBindingMode,omitempty"`
	OwnExpansion     bool `json:"ownAllowVolumeExpansion,omitempty"`
}

func (c *StorageClass) label() *string { return &c.Name }

// VolumeType is the type that a class was made for. By its ID the guard sees that a type has another name. A type that is gone has none.
type VolumeType struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
}

// SnapshotClass is the VolumeSnapshotClass, if snapshots are enabled.
type SnapshotClass struct {
	Enabled bool   `json:"enabled"`
	Name    string `json:"name,omitempty"`
	// InUse is whether volumes in use can be snapshotted without force (Cinder 3.66).
	InUse bool `json:"snapshotInUse"`
	// Default is whether it is the default class of its driver name.
	Default bool `json:"default"`
}

// MarshalJSON leaves out what means nothing without snapshots.
func (s SnapshotClass) MarshalJSON() ([]byte, error) {
	if !s.Enabled {
		return []byte(`{"enabled":false}`), nil
	}
	type fields SnapshotClass
	return json.Marshal(fields(s))
}

// BackupClass is the VolumeSnapshotClass that makes Cinder backups. Like the other class it forces a backup of a volume in use where
// SnapshotClass.InUse is false.
type BackupClass struct {
	Enabled bool   `json:"enabled"`
	Name    string `json:"name,omitempty"`
}

// FurtherSnapshotClass is a VolumeSnapshotClass that a person asked for. Its JSON names fields as Kubernetes does.
type FurtherSnapshotClass struct {
	Name           string            `json:"-"` // it is in the decision's id
	DeletionPolicy string            `json:"deletionPolicy"`
	Default        bool              `json:"default,omitempty"`
	Parameters     map[string]string `json:"parameters,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
}

func (c *FurtherSnapshotClass) label() *string { return &c.Name }

// AttributesClass is a VolumeAttributesClass. Its JSON names fields as Kubernetes does.
type AttributesClass struct {
	Name       string            `json:"-"` // it is in the decision's id
	VolumeType VolumeType        `json:"volumeType,omitzero"`
	DriverName string            `json:"driverName"`
	Parameters map[string]string `json:"parameters"`
}

func (c *AttributesClass) label() *string { return &c.Name }

// NetworkPolicy is what the controller's pods may reach, and what may reach them; empty when policies are not emitted. Ports and CIDRs
// are OpenStack's.
type NetworkPolicy struct {
	Enabled bool     `json:"enabled"`
	Ports   []int    `json:"ports,omitempty"` // TCP, sorted: of identity, compute and block storage
	CIDRs   []string `json:"cidrs,omitempty"` // sorted; empty: any address on those ports
	// APIServerCIDRs are sorted; empty: any address on the API server's ports. MetricsNamespaces are sorted too.
	APIServerCIDRs    []string `json:"apiServerCIDRs,omitempty"`
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`
	// APIServerPorts are sorted; empty: 6443. DNSCIDRs are sorted, and allowed beside the pods of the cluster.
	APIServerPorts []int    `json:"apiServerPorts,omitempty"`
	DNSCIDRs       []string `json:"dnsCIDRs,omitempty"`
}

// Workload is how one role's pods run, after per-target defaults. The ids of its decisions begin with the role: controller.replicas.
type Workload struct {
	Replicas         Decision[int]                                 `id:"replicas"` // controller only
	PriorityClass    Decision[string]                              `id:"priorityClass"`
	NodeSelector     Decision[map[string]string]                   `id:"nodeSelector"`
	Tolerations      Decision[[]v1alpha1.Toleration]               `id:"tolerations"`
	PodLabels        Decision[map[string]string]                   `id:"podLabels"`
	ImagePullSecrets Decision[[]string]                            `id:"imagePullSecrets"`
	RunAsUser        Decision[*int64]                              `id:"runAsUser"` // nil: the platform chooses
	Proxy            Decision[v1alpha1.Proxy]                      `id:"proxy"`
	Memory           Decision[map[string]string]                   `id:"memory"`          // requests by container, over those of the base; controller only
	Resources        Decision[map[string]v1alpha1.Resources]       `id:"resources"`       // by container, over Memory and those of the base
	PullPolicies     Decision[map[string]string]                   `id:"imagePullPolicy"` // by container, where it is not the base's
	Affinity         Decision[*v1alpha1.Affinity]                  `id:"affinity"`        // nil: the base's, or HyperShift's
	Spread           Decision[[]v1alpha1.TopologySpreadConstraint] `id:"topologySpreadConstraints"`
	PodAnnotations   Decision[map[string]string]                   `id:"podAnnotations"`
	Env              Decision[map[string]string]                   `id:"env"`       // of every container
	ExtraArgs        Decision[[]string]                            `id:"extraArgs"` // of the driver
	UpdateStrategy   Decision[v1alpha1.UpdateStrategy]             `id:"updateStrategy"`
	Images           map[string]Decision[string]                   `id:"images."` // by sidecar: those that this role alone has
}

// Image is the decision on the image of one container of a role.
func (r Result) Image(w Workload, container string) Decision[string] {
	if own, there := w.Images[container]; there {
		return own
	}
	return r.Images[container]
}
