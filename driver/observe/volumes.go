// Package observe reads the volumes of a cloud, waits for their changes, and reads why Cinder failed to process one.
//
// It changes nothing in the cloud. It keeps the last reading of a volume in memory for five seconds (recent.go). A restart loses that, and
// the driver reads the volume again.
package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Volumes reads the volumes of one cloud and waits for their changes.
type Volumes struct {
	Cloud  volume.Cloud
	Waiter volume.Waiter
	Log    *slog.Logger
}

// Get reads one volume. NotFound where it does not exist.
func (o Volumes) Get(ctx context.Context, id volume.ID) (volume.Volume, error) {
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id)
	}
	return o.Cloud.Volume(ctx, id)
}

// Await waits until done returns true or an error; ok is false once the volume does not exist. What completes the sentence "waited for the
// volume to" in the error where ctx ends first. The waiter adds the status that it read last.
func (o Volumes) Await(ctx context.Context, id volume.ID, what string, done func(v volume.Volume, ok bool) (bool, error)) (volume.Volume, error) {
	defer volume.BeginStep(ctx, "waiting for volume "+string(id)+" to "+what)()
	v, err := o.Waiter.Await(ctx, id, done)
	if kind := volume.KindOf(err); kind == volume.DeadlineExceeded || kind == volume.Canceled {
		return v, volume.Errorf(volume.KindOf(err), "waited for the volume to %s: %w", what, err)
	}
	return v, err
}

// AwaitDeleted waits until Cinder answers 404 for a volume. Failed where Cinder sets it to error_deleting. Busy where the backend cannot delete it
// yet: Cinder then restores its status, without a message (VolumeIsBusy in cinder/volume/manager.py). Ceph does that for half a minute after the
// crash of a node that used the volume.
func (o Volumes) AwaitDeleted(ctx context.Context, id volume.ID) error {
	written, kept := volume.JustWritten(), false
	v, err := o.Await(ctx, id, "be deleted", func(v volume.Volume, ok bool) (bool, error) {
		kept = ok && v.Status.Meaning().Delete == volume.Proceed && written.Shows()
		return !ok || kept || v.Status == "error_deleting", nil
	})
	switch {
	case err != nil:
		return err
	case kept:
		return volume.Errorf(volume.Busy, "the backend kept volume %s, which is %s again; most likely a client still holds it. A retry deletes it", id, v.Status).Op("delete")
	case v.Status != "error_deleting":
		return nil
	}
	return volume.Errorf(volume.Failed, "Cinder failed to delete volume %s%s; it stays in status error_deleting until an administrator resets the status",
		id, o.FailureReason(ctx, id)).Cause(cause.VolumeDeleteError).Op("delete")
}

// FailureReason reads Cinder's message about a volume in an error status (Cinder API reference, "Messages"). It returns the end of a
// clause: ": no space". It returns an empty string where Cinder has no message, or where the driver cannot read it.
func (o Volumes) FailureReason(ctx context.Context, id volume.ID) string {
	reason, _ := o.ReadFailureReason(ctx, id)
	return reason
}

// ReadFailureReason is FailureReason for a caller whose answer depends on the message: it also returns why the driver cannot read it.
func (o Volumes) ReadFailureReason(ctx context.Context, id volume.ID) (string, error) {
	reason, err := o.Cloud.Failure(ctx, id)
	if err != nil {
		o.Log.WarnContext(ctx, "cannot read Cinder's messages about a volume", "volume", id, "error", err)
		return "", err
	}
	if reason == "" {
		return "", nil
	}
	return ": " + reason, nil
}

// AwaitFailureReason is ReadFailureReason for an object that has just failed. The message may show later than the status.
func (o Volumes) AwaitFailureReason(ctx context.Context, id volume.ID) (string, error) {
	return AwaitReason(ctx, func() (string, error) { return o.ReadFailureReason(ctx, id) })
}

// AwaitReason reads Cinder's message about a failure that the driver has just seen, until there is one, or there should be one. Cinder saves the
// status of a busy snapshot before the message (cinder/volume/manager.py, delete_snapshot), and a database server may lag.
func AwaitReason(ctx context.Context, read func() (string, error)) (string, error) {
	const pause = time.Second
	for failed := volume.JustWritten(); ; {
		reason, err := read()
		if reason != "" || err != nil || failed.Shows() {
			return reason, err
		}
		if volume.Sleep(ctx, pause) != nil {
			return "", nil
		}
	}
}

// SnapshotOrBackup reads the object of a snapshot handle, which may be the ID of either. NotFound where Cinder has neither.
func SnapshotOrBackup(ctx context.Context, c volume.Cloud, id volume.SnapshotID) (volume.Snapshot, error) {
	s, err := c.Snapshot(ctx, id)
	if volume.Is(err, volume.NotFound) {
		return c.Backup(ctx, id)
	}
	return s, err
}
