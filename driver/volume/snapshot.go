package volume

import (
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// SnapshotID is the UUID of a Cinder snapshot or backup; the snapshotHandle of a VolumeSnapshotContent holds it.
type SnapshotID string

// Exists reports whether a snapshot or backup can have this ID, as ID.Exists does for a volume.
func (id SnapshotID) Exists() bool { return contract.IsUUID(string(id)) }

// ParseSnapshotID does for a snapshot or backup what ParseID does for a volume.
func ParseSnapshotID(id string) SnapshotID { return SnapshotID(strings.ToLower(id)) }

// Snapshot is a Cinder snapshot or backup (Cinder API reference, "Show a snapshot's details" and "Show backup detail").
type Snapshot struct {
	ID        SnapshotID
	Name      string
	Volume    ID // the volume that it was created from; Cinder keeps a volume as long as it has snapshots
	Status    Status
	Size      Size // of the volume at that time: the minimum for a volume created from the snapshot
	Metadata  map[string]string
	CreatedAt time.Time  // by the clock of Cinder
	Backup    bool       // it is a backup, which may exist longer than its volume
	Reason    string     // why Cinder gave up on a backup; for a snapshot, SnapshotFailure reads it
	From      SnapshotID // the snapshot that a backup was created from, if any
	Zone      string     // of a backup: the zone where Cinder looks for its cinder-backup; empty where Cinder does not say, as up to Zed
	// Objects is how many objects of its store have the data of a backup. It is 0 until the backup is available, and always in Ceph. For an
	// Incremental backup it is also 0 in every other store, if nothing has changed since the backup before (_finalize_backup in
	// cinder/backup/chunkeddriver.py).
	Objects     int
	Incremental bool      // of a backup: it has only what changed since another one
	DataAt      time.Time // when the volume had the data that a backup holds
}

// NoSnapshot is the error of an ID that neither a snapshot nor a backup has.
func NoSnapshot(id SnapshotID) *Error { return Errorf(NotFound, "snapshot %q does not exist", id) }

// Ready reports whether Cinder creates volumes from p now.
func (p Snapshot) Ready() bool { return p.Status.SnapshotMeaning().Source == Proceed }

// InCeph reports whether p is a backup that proves to be in Ceph: a full one with all its data and no object. Every other store of Cinder counts
// at least one object of a full backup.
func (p Snapshot) InCeph() bool { return p.MayBeInCeph() && !p.Incremental && p.Ready() }

// MayBeInCeph reports whether p is a backup that does not prove to be in another store than Ceph.
func (p Snapshot) MayBeInCeph() bool { return p.Backup && p.Objects == 0 }

// Alive reports whether p is created or being created: Cinder has neither given up on it nor begun to delete it.
func (p Snapshot) Alive() bool {
	step := p.Status.SnapshotMeaning().Create
	return step == Proceed || step == Wait
}
