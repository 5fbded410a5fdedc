package volumetest

import (
	"context"
	"fmt"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// poll reads an object every 300 virtual milliseconds until done.
func poll[T any](ctx context.Context, noun string, read func() (T, error), status func(T) volume.Status, done func(object T, ok bool) (bool, error)) (T, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	var last T
	for {
		select {
		case <-ctx.Done():
			var none T
			return none, volume.Errorf(volume.KindOf(ctx.Err()), "%s: it is %s: %w", noun, status(last), ctx.Err())
		case <-tick.C:
		}
		object, err := read()
		last = object
		if end, err := done(object, err == nil); end || err != nil {
			return object, err
		}
	}
}

// Await implements volume.Waiter.
func (c *Cloud) Await(ctx context.Context, id volume.ID, done func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	return poll(ctx, fmt.Sprintf("volume %s", id), func() (volume.Volume, error) { return c.Read(id) }, func(v volume.Volume) volume.Status { return v.Status }, done)
}

// SnapshotWaiter waits for the snapshots of a Cloud.
type SnapshotWaiter struct{ *Cloud }

// Await implements volume.SnapshotWaiter.
func (w SnapshotWaiter) Await(ctx context.Context, id volume.SnapshotID, done func(volume.Snapshot, bool) (bool, error)) (volume.Snapshot, error) {
	return poll(ctx, fmt.Sprintf("snapshot %s", id), func() (volume.Snapshot, error) { return w.readSnapshot(id) }, snapshotStatus, done)
}

// BackupWaiter waits for the backups of a Cloud.
type BackupWaiter struct{ *Cloud }

// Await implements volume.SnapshotWaiter.
func (w BackupWaiter) Await(ctx context.Context, id volume.SnapshotID, done func(volume.Snapshot, bool) (bool, error)) (volume.Snapshot, error) {
	return poll(ctx, fmt.Sprintf("backup %s", id), func() (volume.Snapshot, error) { return w.readBackup(id) }, snapshotStatus, done)
}

func snapshotStatus(p volume.Snapshot) volume.Status { return p.Status }
