// Package plan decides. Decide is a pure function of an inventory and a configuration: no time, network, randomness or file ever
// reaches it. Every value it emits is a Decision: the value, one sentence of reason, the facts it rests on, and whether a person
// or a rule chose it. Decisions rest only on what a project member can read.
package plan

import "github.com/cinder-csi/cinder-csi/generator/v1alpha1"

// Source says who chose a value.
type Source string

// The sources.
const (
	FromConfig Source = "config"
	Inferred   Source = "inferred"
	Default    Source = "default"
)

// Decision is a value with its grounds.
type Decision[T any] struct {
	Value  T
	Reason string   // one sentence a person understands
	Facts  []string // what in the inventory it rests on: "zones.compute = az1, az2"
	Source Source
}

// Result is everything a bundle is rendered from. Package bundle reads this and nothing else.
type Result struct {
	Generator string // version
	Simulated bool
	Cloud     v1alpha1.Cloud
	Target    v1alpha1.Target
	Format    v1alpha1.Format
	Config    v1alpha1.Spec // normalised

	Driver         Decision[Driver]
	PVCAnnotations Decision[bool] // the driver's container gets the pod's token
	Namespaces     Decision[v1alpha1.Namespaces]
	ClusterID      Decision[string]
	Credentials    Decision[Credentials]
	Topology       Decision[Topology]
	StorageClasses []Decision[StorageClass] // sorted by name
	DefaultClass   Decision[string]         // class name; empty: none
	SnapshotClass  Decision[SnapshotClass]
	CloudConf      Decision[string] // the text of cloud.conf for the controller
	AttachLimit    Decision[string] // "" = each node computes its own
	LimitRefresh   Decision[int]    // seconds after which kubelet asks a node for its limit again; 0: never
	NetworkPolicy  Decision[NetworkPolicy]
	Controller     Decision[Workload]
	Node           Decision[Workload]
	Warnings       []string // follow from inventory and configuration alone; may be emitted
	Notices        []string // momentary, for the terminal only: never emitted, or an outage would be drift
}

// Driver is the driver's identity in the cluster.
type Driver struct {
	Name        string
	TopologyKey string
	LogLevel    int
}

// Credentials name the Secret that people create; the generator never sees its content.
type Credentials struct {
	SecretName string
	Key        string // the Secret's key that holds clouds.yaml
	Cloud      string // the entry in it
	CABundle   string // PEM, empty: the system's roots
}

// Topology is whether volumes and nodes carry zones, and how compute zones map to volume zones where names differ.
type Topology struct {
	Enabled bool
	ZoneMap map[string]string
}

// StorageClass is one class. Default is set on at most one.
type StorageClass struct {
	Name                 string
	TypeID, TypeName     string // the volume type it was made for
	Parameters           map[string]string
	ReclaimPolicy        string
	VolumeBindingMode    string
	MountOptions         []string
	Annotations          map[string]string // people's own; default-class and prune guards are the bundle's to add
	Default              bool
	AllowVolumeExpansion bool
	AllowedZones         []string // compute zones its type can serve; empty: all
}

// SnapshotClass is the VolumeSnapshotClass, if snapshots are enabled.
type SnapshotClass struct {
	Enabled bool
	Name    string
	// InUse is whether volumes in use can be snapshotted without force (Cinder 3.66).
	InUse bool
}

// NetworkPolicy is what the controller's pods may reach, and what may reach them; empty when policies are not emitted. Ports and CIDRs
// are OpenStack's.
type NetworkPolicy struct {
	Enabled bool
	Ports   []int    // TCP, sorted: of identity, compute and block storage
	CIDRs   []string // sorted; empty: any address on those ports
	// APIServerCIDRs are sorted; empty: any address on the API server's ports. MetricsNamespaces are sorted too.
	APIServerCIDRs    []string
	MetricsNamespaces []string
}

// Workload is how one role's pods run, after per-target defaults.
type Workload struct {
	Replicas         int // controller only
	NodeSelector     map[string]string
	Tolerations      []v1alpha1.Toleration
	PodLabels        map[string]string
	ImagePullSecrets []string
	RunAsUser        *int64
	PriorityClass    string
	Images           map[string]v1alpha1.Image // overrides only, by role or sidecar
	Proxy            v1alpha1.Proxy
	Resources        map[string]v1alpha1.Resources
}
