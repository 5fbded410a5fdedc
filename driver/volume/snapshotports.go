package volume

import "context"

// SnapshotCloud is what the domain asks of Cinder about snapshots, by the rules of Cloud, which includes it.
type SnapshotCloud interface {
	// CreateSnapshot asks Cinder for a snapshot and returns it as accepted, usually still creating. Unimplemented where
	// SnapshotOptions.InUse is asked of a cloud that does not know it. POST /v3/snapshots (Cinder API reference, "Create a
	// snapshot").
	CreateSnapshot(ctx context.Context, o SnapshotOptions) (Snapshot, error)
	// Snapshot reads one snapshot. GET /v3/snapshots/{id}.
	Snapshot(ctx context.Context, id SnapshotID) (Snapshot, error)
	// SnapshotsNamed reads every snapshot of the project with exactly that name; names are not unique in Cinder.
	// GET /v3/snapshots/detail?name=…
	SnapshotsNamed(ctx context.Context, name string) ([]Snapshot, error)
	// Snapshots reads one page of the project's snapshots in Cinder's order, created_at descending. GET /v3/snapshots/detail.
	Snapshots(ctx context.Context, page SnapshotPage) ([]Snapshot, error)
	// DeleteSnapshot asks Cinder to delete one snapshot. DELETE /v3/snapshots/{id}.
	DeleteSnapshot(ctx context.Context, id SnapshotID) error
	// SnapshotFailure reads why the cloud gave up on a snapshot, as Cloud.Failure does.
	SnapshotFailure(ctx context.Context, id SnapshotID) (string, error)
}

// SnapshotWaiter is the Waiter for snapshots, or for backups.
type SnapshotWaiter interface {
	// Await does for a snapshot what Waiter.Await does for a volume.
	Await(ctx context.Context, id SnapshotID, done func(p Snapshot, ok bool) (bool, error)) (Snapshot, error)
}

// SnapshotOptions is what a new snapshot is made with.
type SnapshotOptions struct {
	Name        string
	Volume      ID
	Description string
	Metadata    map[string]string
	// InUse asks for a snapshot also of a volume that is in use, as Cinder makes it from 3.66 on.
	InUse bool
	// Force asks for that as older Cinders do.
	Force bool
}

// SnapshotPage asks for at most Limit snapshots after the one whose id is Marker, those of one volume where Volume is set.
// Limit 0 means as many as Cinder gives in one answer.
type SnapshotPage struct {
	Marker SnapshotID
	Limit  int
	Volume ID
}
