package volume

import "time"

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
func (p Snapshot) Ready() bool { return snapshotStatuses[p.Status].source == proceed }

// Alive reports whether p is there or being made: neither did Cinder give up on it nor is it on its way out.
func (p Snapshot) Alive() bool {
	step := snapshotStatuses[p.Status].create
	return step == proceed || step == wait
}

// snapshotMeanings says what each status means for the three things that are done with snapshots.
type snapshotMeanings struct {
	create step // proceed: it is there. wait: it is being made. refuse: it never will be
	delete step // proceed: Cinder takes a DELETE
	source step // proceed: Cinder makes a volume from it
}

// What Cinder's snapshot statuses mean (Cinder API reference, "Snapshot statuses"; objects/fields.py and volume/api.py of Cinder
// 21: a DELETE is taken in available and error, a volume is made from an available one).
var snapshotStatuses = map[Status]snapshotMeanings{
	"creating":       {create: wait, delete: wait, source: wait},
	"available":      {create: proceed, delete: proceed, source: proceed},
	"error":          {create: refuse, delete: proceed, source: refuse},
	"deleting":       {create: leaving, delete: leaving, source: leaving},
	"deleted":        {create: leaving, delete: leaving, source: leaving},
	"error_deleting": {create: refuse, delete: refuse, source: refuse},
	"unmanaging":     {create: leaving, delete: leaving, source: leaving},
	"updating":       {create: proceed, delete: wait, source: wait},
	"backing-up":     {create: proceed, delete: wait, source: wait},
	"restoring":      {create: proceed, delete: wait, source: wait},
}
