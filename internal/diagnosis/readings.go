package diagnosis

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// Readings are everything that Read found out about one claim. A nil pointer means that the object does not exist or was not read; Gaps
// tells the two apart.
type Readings struct {
	Now             time.Time
	Namespace, Name string

	Claim    *corev1.PersistentVolumeClaim
	Volume   *corev1.PersistentVolume // the claim's, or the one that was bound to a claim of this name
	Class    *storagev1.StorageClass
	Snapshot *Snapshot // the source of the claim
	Events   []corev1.Event
	Pods     []corev1.Pod // that use the claim
	// Attachments are those of the PersistentVolume.
	Attachments []storagev1.VolumeAttachment
	Nodes       map[string]*Node

	Driver string // name of the CSI driver
	// ControllerNamed says that the user named the namespace of the controller.
	ControllerNamed bool
	Controllers     []corev1.Pod
	ClusterID       string // with which the driver marks volumes; empty if it was not read
	Leases          []Lease
	Operations      []Operation

	Cloud *CloudReadings // nil: the cloud was not read
	Gaps  []Gap
}

// others reports whether the PersistentVolume that the claim names belongs to another claim.
func (f Readings) others() bool {
	if f.Claim == nil || f.Volume == nil || f.Volume.Spec.ClaimRef == nil {
		return false
	}
	ref := f.Volume.Spec.ClaimRef
	return ref.Namespace != f.Namespace || ref.Name != f.Name || ref.UID != "" && f.Claim.UID != "" && ref.UID != f.Claim.UID
}

// Snapshot is a VolumeSnapshot, as far as a claim depends on it.
type Snapshot struct {
	Name    string
	Missing bool
	Ready   bool
	Handled bool // the snapshot-controller has written a status
	Error   string
	Created metav1.Time
}

// Node is one node that the volume is or shall be attached to.
type Node struct {
	Missing  bool
	Ready    bool
	Since    time.Time // of the last change of Ready
	Driver   *storagev1.CSINodeDriver
	Seen     bool         // CSINode could be read
	Provider string       // the server that the provider ID of the node names
	Rival    string       // another node that names the same server
	Alone    bool         // no other node names that server; false if nobody compared
	Plugins  []corev1.Pod // of the driver on the node
	Finding  string       // what the driver of the node found wrong with the volume: a reason of its metric, or empty
}

// Lease is a leader lease of a sidecar.
type Lease struct {
	Name   string
	Holder string
	Until  time.Time // when another replica may take it
}

// Operation is an entry of /debug/operations (docs/reference/driver.md, "Operations in progress").
type Operation struct {
	Method    string     `json:"method"`
	Object    string     `json:"object"`
	Since     time.Time  `json:"since"`
	RPCs      int        `json:"rpcs"`
	Step      string     `json:"step"`
	StepSince *time.Time `json:"stepSince"`
	State     string     `json:"state"`
	Requests  []string   `json:"requests"`
	Running   bool       `json:"running"`
	LastCode  string     `json:"lastCode"`
	LastError string     `json:"lastError"`
	LastCause cause.ID   `json:"lastCause"`
}

// CloudReadings are what Cinder and Nova say.
type CloudReadings struct {
	Name        string
	Missing     bool         // Cinder has no volume of this ID
	Volume      *CloudVolume // nil: there is none, or it could not be read
	Attachments []CloudAttachment
	Message     string // the last user message of Cinder about the volume
	Servers     map[string]*CloudServer
	Quota       map[string]Quota // by resource
}

// CloudVolume is a volume of Cinder.
type CloudVolume struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Size     int               `json:"size"` // GiB
	Zone     string            `json:"availability_zone"`
	Updated  cloudTime         `json:"updated_at"`
	Created  cloudTime         `json:"created_at"`
	Metadata map[string]string `json:"metadata"`
}

// CloudAttachment is an attachment of Cinder.
type CloudAttachment struct {
	ID     string `json:"id"`
	Server string `json:"instance"`
	Status string `json:"status"`
}

// CloudServer is a server of Nova.
type CloudServer struct {
	Missing bool   `json:"-"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Task    string `json:"OS-EXT-STS:task_state"`
	Locked  bool   `json:"locked"` // from microversion 2.9 on
	// Has says whether Nova lists the volume at the server.
	Has bool `json:"-"`
}

// Quota is one quota of the project. A limit of -1 means none.
type Quota struct {
	Limit    int `json:"limit"`
	InUse    int `json:"in_use"`
	Reserved int `json:"reserved"`
}

// cloudTime is a time of Cinder: UTC without a zone, or null.
type cloudTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. A time that cannot be read is the zero time: no diagnosis depends on it.
func (t *cloudTime) UnmarshalJSON(data []byte) error {
	for _, layout := range []string{`"2006-01-02T15:04:05.999999"`, `"` + time.RFC3339Nano + `"`} {
		if at, err := time.Parse(layout, string(data)); err == nil {
			t.Time = at.UTC()
			return nil
		}
	}
	return nil
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
