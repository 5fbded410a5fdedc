package observe

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ForDelete selects what a status means for a delete.
func ForDelete(m volume.Meaning) volume.Step { return m.Delete }

// ForExtend selects what a status means for an expansion, a retype, a snapshot or a clone.
func ForExtend(m volume.Meaning) volume.Step { return m.Extend }

// Settled returns v if its status allows or forbids an operation already, else what AwaitSettled returns.
func (o Volumes) Settled(ctx context.Context, v volume.Volume, what string, operation func(volume.Meaning) volume.Step) (volume.Volume, error) {
	if operation(v.Status.Meaning()) != volume.Wait {
		return v, nil
	}
	return o.AwaitSettled(ctx, v.ID, what, operation)
}

// AwaitSettled waits until the status of a volume no longer means Wait for an operation. NotFound if the volume disappears.
func (o Volumes) AwaitSettled(ctx context.Context, id volume.ID, what string, operation func(volume.Meaning) volume.Step) (volume.Volume, error) {
	return o.AwaitEffect(ctx, id, what, operation, func(volume.Volume) bool { return true })
}

// AwaitEffect is AwaitSettled after a write that Cinder has answered. If the status allows the operation, but the volume does not have the effect,
// that may be the state before the write.
func (o Volumes) AwaitEffect(ctx context.Context, id volume.ID, what string, operation func(volume.Meaning) volume.Step, has func(volume.Volume) bool) (volume.Volume, error) {
	written := volume.JustWritten()
	v, err := o.Await(ctx, id, what, func(v volume.Volume, ok bool) (bool, error) {
		if !ok {
			return true, volume.NoVolume(id)
		}
		step := operation(v.Status.Meaning())
		return step != volume.Wait && (step != volume.Proceed || has(v) || written.Shows()), nil
	})
	if err != nil {
		return volume.Volume{}, err
	}
	return v, nil
}

// Stuck is the Conflict error of a volume whose status does not change by itself. Consequence is a clause: "Cinder does not delete it".
func (o Volumes) Stuck(ctx context.Context, v volume.Volume, consequence string) *volume.Error {
	return volume.Errorf(volume.Conflict, "volume %s is in status %s%s; %s until an administrator resets the status", v.ID, v.Status, o.FailureReason(ctx, v.ID), consequence).Cause(cause.VolumeError)
}
