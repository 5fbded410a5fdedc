package volume

import (
	"maps"
	"slices"
	"time"
)

// SnapshotID is the UUID of a Cinder snapshot or backup, as it stands in a VolumeSnapshotContent's snapshotHandle.
type SnapshotID string

// Exists reports whether id can be that of a snapshot at all, as ID.Exists does.
func (id SnapshotID) Exists() bool { return isUUID(string(id)) }

// Snapshot is what Cinder says of one snapshot or one backup.
type Snapshot struct {
	ID        SnapshotID
	Name      string
	Volume    ID // that it was made of; Cinder keeps the volume as long as the snapshot
	Status    Status
	Size      Size // of the volume when it was made: the least a volume made from it can have
	Metadata  map[string]string
	CreatedAt time.Time
	Backup    bool       // it is a backup, which outlives its volume
	Reason    string     // why Cinder gave up on a backup; a snapshot's is SnapshotFailure's
	From      SnapshotID // the snapshot that a backup was made from, if any
	DataAt    time.Time  // when the volume held what a backup holds
}

// Ready reports whether a volume can be made from p now.
func (p Snapshot) Ready() bool { return p.Status.SnapshotMeaning().Source == Proceed }

// Alive reports whether p is there or being made: neither did Cinder give up on it nor is it on its way out.
func (p Snapshot) Alive() bool {
	step := p.Status.SnapshotMeaning().Create
	return step == Proceed || step == Wait
}

// SnapshotMeaning says what each status means for the three things that are done with snapshots.
type SnapshotMeaning struct {
	Create Step // proceed: it is there. wait: it is being made. refuse: it never will be
	Delete Step // proceed: Cinder takes a DELETE
	Source Step // proceed: Cinder makes a volume from it
}

// What Cinder's snapshot statuses mean (Cinder API reference, "Snapshot statuses"; objects/fields.py and volume/api.py of Cinder
// 21: a DELETE is taken in available and error, a volume is made from an available one).
var snapshotStatuses = map[Status]SnapshotMeaning{
	"creating":       {Create: Wait, Delete: Wait, Source: Wait},
	"available":      {Create: Proceed, Delete: Proceed, Source: Proceed},
	"error":          {Create: Refuse, Delete: Proceed, Source: Refuse},
	"deleting":       {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"deleted":        {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"error_deleting": {Create: Refuse, Delete: Refuse, Source: Refuse},
	"unmanaging":     {Create: BeingDeleted, Delete: BeingDeleted, Source: BeingDeleted},
	"updating":       {Create: Proceed, Delete: Wait, Source: Wait},
	"backing-up":     {Create: Proceed, Delete: Wait, Source: Wait},
	"restoring":      {Create: Proceed, Delete: Wait, Source: Wait},
}

// SnapshotMeaning is what s means for a snapshot or backup. A status that Cinder adds later means Wait for everything.
func (s Status) SnapshotMeaning() SnapshotMeaning { return snapshotStatuses[s] }

// SnapshotStatuses are all that the table knows, sorted.
func SnapshotStatuses() []Status { return slices.Sorted(maps.Keys(snapshotStatuses)) }
