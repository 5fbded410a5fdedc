package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// grace is how much longer a call waits for work that ends with its context, or by itself shortly before the deadline. A caller with
// enough time still hears the answer: it comes before the deadline.
const grace = 500 * time.Millisecond

// inFlight allows one operation at a time on each volume. An operation that is stuck in the kernel, on a dead disk or a
// hung unmount, does not keep its caller beyond the deadline. It keeps its volume locked, so that no other operation
// works on the volume at the same time.
type inFlight struct {
	// operations is a lock that holds the operation of each volume while nobody uses it.
	operations chan map[string]string
	work       sync.WaitGroup
	log        *slog.Logger
}

func newInFlight(log *slog.Logger) *inFlight {
	f := &inFlight{operations: make(chan map[string]string, 1), log: log}
	f.operations <- map[string]string{}
	return f
}

// insert locks the volume for an operation; Busy if another operation has it.
func (f *inFlight) insert(id, operation string) error {
	operations := <-f.operations
	defer func() { f.operations <- operations }()
	if other, busy := operations[id]; busy {
		return volume.Errorf(volume.Busy, "another operation (%s) is in flight for volume %s; retry later", other, id).Op(operation)
	}
	operations[id] = operation
	return nil
}

func (f *inFlight) delete(id string) {
	operations := <-f.operations
	delete(operations, id)
	f.operations <- operations
}

// run locks the volume, runs work, and returns its error. Busy if another operation is in flight for the volume. If ctx
// ends first or is about to, run returns DeadlineExceeded or Canceled, and the volume stays locked until work returns.
func (f *inFlight) run(ctx context.Context, id, operation string, work func(context.Context) error) error {
	id = string(volumeID(id)) // two PersistentVolumes may write it in different cases
	if err := f.insert(id, operation); err != nil {
		return err
	}
	done := make(chan error, 1)
	f.work.Go(func() {
		err := panics.Try(func() error { return work(ctx) })
		if panics.Log(f.log.With("operation", operation, "volume", id), "an operation of the node", err) {
			err = volume.Errorf(volume.Unknown, "volume %s: the driver failed unexpectedly; its log has the stack", id)
		}
		f.delete(id) // before the answer, or the next call of the same caller would find the volume locked
		done <- err
	})
	early, cancel := volume.BeforeDeadline(ctx)
	defer cancel()
	select {
	case err := <-done:
		return volume.WithOp(err, operation)
	case <-early.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return volume.WithOp(err, operation)
	case <-timer.C:
		return volume.WithOp(volume.Interrupted(early, "volume %s: the operation%s continues and may be stuck on a disk that does not answer; a retry is refused until it ends",
			id, stepOf(ctx)), operation)
	}
}

// stepOf is what an operation does at the moment, with the disk.
func stepOf(ctx context.Context) string {
	step, ok := volume.ProgressOf(ctx).Step()
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%s since %s)", step.What, step.Since.Format(time.RFC3339))
}

// drain waits for operations whose callers are gone, such as a mkfs. No new operation may begin.
func (f *inFlight) drain(ctx context.Context) {
	idle := make(chan struct{})
	go func() { f.work.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		operations := <-f.operations
		f.log.WarnContext(ctx, "the driver ends while operations are in flight", "volumes", fmt.Sprint(operations))
		f.operations <- operations
	}
}
