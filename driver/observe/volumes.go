// Package observe reads the volumes of a cloud, waits for them, and says why Cinder gave up on one.
//
// It keeps the last reading of a volume for five seconds (recent.go). A restart loses nothing: the volume is read again.
package observe

import (
	"context"
	"log/slog"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Observer reads the volumes of one cloud and waits for them.
type Volumes struct {
	Cloud  volume.Cloud
	Waiter volume.Waiter
	Log    *slog.Logger
}

// Get reads one volume. NotFound where there is none.
func (o Volumes) Get(ctx context.Context, id volume.ID) (volume.Volume, error) {
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id)
	}
	return o.Cloud.Volume(ctx, id)
}

// Await waits for done. If the context ends first, the error says what the driver waited for; the waiter adds what it saw last.
func (o Volumes) Await(ctx context.Context, id volume.ID, what string, done func(v volume.Volume, ok bool) (bool, error)) (volume.Volume, error) {
	v, err := o.Waiter.Await(ctx, id, done)
	if kind := volume.KindOf(err); kind == volume.DeadlineExceeded || kind == volume.Canceled {
		return v, volume.Errorf(kind, "waited for it to %s: %w", what, err)
	}
	return v, err
}

// AwaitDeleted waits until Cinder answers 404 for a volume. Failed when its deletion ends in an error.
func (o Volumes) AwaitDeleted(ctx context.Context, id volume.ID) error {
	v, err := o.Await(ctx, id, "be deleted", func(v volume.Volume, ok bool) (bool, error) {
		return !ok || v.Status == "error_deleting", nil
	})
	if err != nil || v.Status != "error_deleting" {
		return err
	}
	return volume.Errorf(volume.Failed, "Cinder could not delete volume %s%s; it stays in status error_deleting until an administrator resets it",
		id, o.FailureReason(ctx, id)).Op("delete")
}

// FailureReason is Cinder's message about a volume that went to an error status, as the end of a clause: ": no space". It is empty where
// Cinder has none, or where it cannot be read.
func (o Volumes) FailureReason(ctx context.Context, id volume.ID) string {
	reason, err := o.Cloud.Failure(ctx, id)
	if err != nil {
		o.Log.WarnContext(ctx, "cannot read Cinder's messages about a volume", "volume", id, "error", err)
		return ""
	}
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// snapshotOrBackup reads what a snapshot handle names. NotFound only where Cinder has neither a snapshot nor a backup of that id.
func SnapshotOrBackup(ctx context.Context, c volume.Cloud, id volume.SnapshotID) (volume.Snapshot, error) {
	p, err := c.Snapshot(ctx, id)
	if volume.Is(err, volume.NotFound) {
		return c.Backup(ctx, id)
	}
	return p, err
}
