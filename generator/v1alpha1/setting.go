package v1alpha1

import (
	"regexp"
	"time"
)

// Settings are the settings that the driver takes as they are. To add one, write its field and its row here, then the flag of the driver and its
// argument in _args.tpl of the chart. `make update` makes the rest. Every other key of a Distribution is more than that.
var Settings = []Setting{
	{
		Key: "driver.logLevel", Flag: "v", Variable: "LOG_LEVEL", Default: 2, Bounds: Number{Max: 10},
		Meaning: "How much the driver and its sidecars log, one of klog's levels.",
		Reason:  "one line for each call of the driver", IfSet: "one of klog's levels",
	},
	{
		Key: "driver.logFormat", Flag: "logging-format", Variable: "LOG_FORMAT", Default: LogText, Bounds: OneOf{LogText, LogJSON},
		Meaning: "The format of the logs of the driver and its sidecars.",
		Reason:  "people read text",
	},
	{
		Key: "driver.kubeletDir", Role: NodeRole, Variable: "KUBELET_DIR", Default: "/var/lib/kubelet", Bounds: KubeletDirectory,
		Meaning: "kubelet's root directory on the nodes. k0s has /var/lib/k0s/kubelet, microk8s /var/snap/microk8s/common/var/lib/kubelet.",
		Reason:  "kubelet's own default",
	},
	{
		Key: "driver.capacity", Role: ControllerRole, Flag: "with-capacity", Variable: "CAPACITY", Default: false, Bounds: Switch{},
		Meaning: "Whether the driver reports what the project's quotas leave. The scheduler then avoids classes without room. It serves one cloud and counts quotas, never the free space of backends.",
		Reason:  "the scheduler does not look at quotas",
	},
	{
		Key: "driver.requestsPerSecond.reads", Decision: "driver.requestsPerSecond", Role: ControllerRole, Flag: "openstack-reads-per-second", Variable: "READS_PER_SECOND",
		Default: 100, Bounds: Number{Zero: "no limit"},
		Meaning: "Read requests a second.", Reason: "the driver's own limits",
	},
	{
		Key: "driver.requestsPerSecond.writes", Decision: "driver.requestsPerSecond", Role: ControllerRole, Flag: "openstack-writes-per-second", Variable: "WRITES_PER_SECOND",
		Default: 50, Bounds: Number{Zero: "no limit"},
		Meaning: "Requests a second that change something.", Reason: "the driver's own limits",
	},
	{
		// The driver needs some of kubelet's 30 seconds to close its servers.
		Key: "driver.drainTimeout", Flag: "drain-timeout", Variable: "DRAIN_TIMEOUT", Default: "20s",
		Bounds:  Duration{time.Second, 25 * time.Second, "because kubelet kills a pod after 30 s"},
		Meaning: "How long RPCs in progress may take after SIGTERM, as a Go duration.",
		Reason:  "the driver's own default",
	},
	{
		// On hypershift the driver acts with the credentials of the management cluster.
		Key: "driver.protectOtherClusters", Role: ControllerRole, Flag: "protect-other-clusters", Variable: "PROTECT_OTHER_CLUSTERS", Default: Auto,
		Bounds:  AutoSwitch{StrictOn: HostedControlPlane, Because: "the administrator of the hosted cluster writes PersistentVolumes, and could name every volume of the project"},
		Meaning: "Whether the driver leaves alone the volumes, snapshots and backups of other clusters (enabled), and also those without a mark (strict). auto is strict on hypershift, where the guest's administrator writes PersistentVolumes, and disabled elsewhere.",
		Reason:  "what a PersistentVolume names is allowed, also a volume of another cluster",
	},
	{
		Key: "driver.volumeMetadata", Role: ControllerRole, Flag: "volume-metadata", Variable: "VOLUME_METADATA", Bounds: cinderMetadata,
		Meaning: "Metadata of each new volume, snapshot and backup. The parameters of a class come before it.",
		Reason:  "volumes have the metadata of their class only",
	},
	{
		Key: "driver.serverMetadata", Role: ControllerRole, Flag: "server-metadata", Variable: "SERVER_METADATA", Bounds: Pairs{Refused: "a control character, a comma or a quotation mark"},
		Meaning: "Metadata, or tags key=value, that a server must have to get volumes. Without it a compromised node or guest's administrator can name any server. Default with hypershift.infraID on OpenStack: openshiftClusterID=infraID.",
		Reason:  "every server of the project may get volumes",
	},
	{
		Key: "driver.userAgent", Role: ControllerRole, Flag: "user-agent", Variable: "USER_AGENT",
		Bounds:  Text{regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._/:;()-]{0,126}[A-Za-z0-9)])?$`), "1 to 128 letters, digits, spaces and . _ / : ; ( ) -"},
		Meaning: "Text before the driver's own user agent in its requests to OpenStack. Then the logs of the cloud tell clusters apart.",
		Reason:  "requests have the driver's own user agent",
	},
}

// Driver settings. Settings describes those that the driver takes as they are, and the reference all of them.
type Driver struct {
	Name     string `json:"name,omitempty"` // default by target and coexistence
	LogLevel *int   `json:"logLevel,omitempty"`
	// PVCAnnotations is whether the driver reads scheduler hints from claims; default false, as upstream; not on hypershift.
	PVCAnnotations *bool  `json:"pvcAnnotations,omitempty"`
	LogFormat      string `json:"logFormat,omitempty"`
	KubeletDir     string `json:"kubeletDir,omitempty"`
	Capacity       bool   `json:"capacity,omitempty"`
	// Metadata are the sources of a node's server ID and zone, in the order in which the node tries them.
	Metadata             []string          `json:"metadata,omitempty"`
	RequestsPerSecond    RequestsPerSecond `json:"requestsPerSecond,omitzero"`
	DrainTimeout         string            `json:"drainTimeout,omitempty"`
	ProtectOtherClusters string            `json:"protectOtherClusters,omitempty"`
	// SELinux is whether kubelet passes the SELinux context of a pod to the mount: auto (default: on OpenShift), enabled or disabled.
	SELinux        string            `json:"seLinux,omitempty"`
	VolumeMetadata map[string]string `json:"volumeMetadata,omitempty"`
	ServerMetadata map[string]string `json:"serverMetadata,omitempty"`
	UserAgent      string            `json:"userAgent,omitempty"`
	ExtraArgs      ExtraArgs         `json:"extraArgs,omitzero"`
}

// RequestsPerSecond limits the controller's requests to the cloud, on average; 0 means no limit.
type RequestsPerSecond struct {
	Reads  *int `json:"reads,omitempty"`
	Writes *int `json:"writes,omitempty"`
}

// Log formats.
const (
	LogText = "text"
	LogJSON = "json"
)
