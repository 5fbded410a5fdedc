package volume

import (
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// CreateOptions are the fields of a create request (Cinder API reference, "Create a volume"). At most one of the three sources is set.
type CreateOptions struct {
	Name        string
	Size        Size   // whole GiB
	Type        string // name or ID; empty means the default type of the cloud
	Zone        string // volume zone; empty means the default zone of Cinder
	SnapshotID  string
	SourceID    ID
	BackupID    string
	Description string
	Metadata    map[string]string
	Hints       contract.Hints // with volume IDs, not names
}

// SnapshotOptions are the fields of a create request (Cinder API reference, "Create a snapshot").
type SnapshotOptions struct {
	Name        string
	Volume      ID
	Description string
	Metadata    map[string]string
	// InUse requests a snapshot even if the volume is in use, as Cinder does from 3.66 on.
	InUse bool
	// Force requests the same from older versions of Cinder.
	Force bool
}

// BackupOptions are the fields of a create request (Cinder API reference, "Create a backup").
type BackupOptions struct {
	Name        string
	Volume      ID
	Snapshot    SnapshotID // of that volume; the backup holds its data
	Zone        string     // of the cinder-backup service that creates it; empty means any
	Incremental bool       // the backup holds what changed since the latest backup of the volume
	Description string
	Metadata    map[string]string
}

// Page requests at most Limit volumes after the one whose ID is Marker. Limit 0 leaves the page size to the adapter.
type Page struct {
	Marker ID
	Limit  int
}

// Selection requests a page of the volumes of the project that match.
type Selection struct {
	Page
	// Metadata are keys and values that the metadata of the volumes has. A cloud without this filter returns others too.
	Metadata map[string]string
	// Since is the earliest time of their last change, by the clock of Cinder, in whole seconds. A volume that has not changed since its
	// creation does not match. The zero Since means any time. A cloud without this filter returns others too.
	Since time.Time
	// Created is the earliest time of their creation, in the same way.
	Created time.Time
}

// SnapshotPage requests at most Limit snapshots or backups after the one whose ID is Marker, only those of Volume if it is set. Limit 0 leaves
// the page size to the adapter.
type SnapshotPage struct {
	Marker SnapshotID
	Limit  int
	Volume ID
	// ForCaller says that the list is for a caller of the driver, and not for the driver itself. Package ownership leaves out what is not the cluster's.
	ForCaller bool
}
