package volume

import "context"

// Waiter waits for the effect of a command. The status hub implements it.
type Waiter interface {
	// Await returns the volume as soon as done returns true or an error, together with that error. Done gets only readings that were made
	// after Await began; ok is false if the volume does not exist. If the context ends first, the error is DeadlineExceeded or Canceled.
	Await(ctx context.Context, id ID, done func(v Volume, ok bool) (bool, error)) (Volume, error)
}

// SnapshotWaiter is a Waiter for snapshots or for backups.
type SnapshotWaiter interface {
	// Await does for a snapshot or backup what Waiter.Await does for a volume.
	Await(ctx context.Context, id SnapshotID, done func(p Snapshot, ok bool) (bool, error)) (Snapshot, error)
}

// WaitingCloud is a cloud with the waiters for its objects.
type WaitingCloud struct {
	Cloud     Cloud
	Volumes   Waiter
	Snapshots SnapshotWaiter
	Backups   SnapshotWaiter
}
