package host

import (
	"context"
	"fmt"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// beforeDeadline ends a little before ctx does, so that the answer, with what was seen, still reaches the caller.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(margin, time.Until(deadline)/10)))
}

// sleep waits until d has passed; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			<-ctx.Done() // it ends at this moment
		}
		return ctx.Err() == nil
	}
}

// ended is the error for a wait that its context cut short.
func ended(ctx context.Context, format string, args ...any) error {
	return volume.Errorf(volume.KindOf(ctx.Err()), "%s: %w", fmt.Sprintf(format, args...), ctx.Err())
}
