package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// await waits for a snapshot or backup until done. If the context ends first, the error says what the driver waited for.
type await func(ctx context.Context, id volume.SnapshotID, what string, done func(p volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error)

func awaitWith(waiter volume.SnapshotWaiter, noun string) await {
	return func(ctx context.Context, id volume.SnapshotID, what string, done func(p volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error) {
		defer volume.BeginStep(ctx, "waiting for "+noun+" "+string(id)+" to "+what)()
		p, err := waiter.Await(ctx, id, done)
		if kind := volume.KindOf(err); kind == volume.DeadlineExceeded || kind == volume.Canceled {
			return p, volume.Errorf(volume.KindOf(err), "waited for it to %s: %w", what, err)
		}
		return p, err
	}
}

// longestBackupWait limits how long a call waits for a backup, from the backup's creation on. A backup takes minutes, and each call that waits
// holds a worker of external-snapshotter, which other VolumeSnapshots need, and polls Cinder. A later call looks once.
const longestBackupWait = 10 * time.Second

// longestBackupRead limits how long a call waits where Cinder does not say the status of a backup, so that the error can say why.
const longestBackupRead = time.Minute

// bounded waits until the backup is longestBackupWait old, and reads it at least once. Then its error is Busy. An error that ends the wait earlier
// is the answer: it may refuse a backup of another cluster, whose status nobody may learn.
func (wait await) bounded(ctx context.Context, id volume.SnapshotID, what string, done func(b volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error) {
	bounded, cancel := context.WithTimeout(ctx, longestBackupRead)
	defer cancel()
	begun, status, old, ended := time.Now(), volume.Creating, false, false
	b, err := wait(bounded, id, what, func(b volume.Snapshot, ok bool) (bool, error) {
		end, err := done(b, ok)
		if ok {
			status = b.Status
			old = !end && err == nil && max(time.Since(begun), time.Since(b.CreatedAt)) >= longestBackupWait
		}
		ended = end || old || err != nil
		return end || old, err
	})
	if err == nil && !old || err != nil && (ended || bounded.Err() == nil || ctx.Err() != nil) {
		return b, err
	}
	var unread volume.UnreadError
	if errors.As(err, &unread) {
		return b, volume.Errorf(volume.Busy, "the driver cannot read whether backup %s is complete, and tries again on the next call: %w", id, unread).Op("snapshot").AfterWrite()
	}
	state := "is being created"
	if status != volume.Creating {
		state = "is not available"
	}
	return b, volume.Errorf(volume.Busy, "backup %s %s (status %s); the driver keeps waiting on the next call", id, state, status).Op("snapshot").AfterWrite()
}

// readDeletable reads a snapshot or backup, and waits until it is deletable.
func (k kind) readDeletable(ctx context.Context, id volume.SnapshotID, wait await) (p volume.Snapshot, err error) {
	err = k.PastLag(ctx, string(id), func() error {
		if p, err = k.Read(ctx, string(id)); err == nil {
			p, err = wait.deletable(ctx, p)
		}
		return err
	})
	return p, err
}

// deletable returns p once its status allows or forbids its deletion. NotFound where it disappears.
func (wait await) deletable(ctx context.Context, p volume.Snapshot) (volume.Snapshot, error) {
	if p.Status.SnapshotMeaning().Delete != volume.Wait {
		return p, nil
	}
	id := p.ID
	return wait(ctx, id, "become deletable", func(p volume.Snapshot, ok bool) (bool, error) {
		if !ok {
			return true, volume.NoSnapshot(id)
		}
		return p.Status.SnapshotMeaning().Delete != volume.Wait, nil
	})
}
