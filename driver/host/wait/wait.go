// Package wait has the waits of the node role: each ends early enough that the caller still receives the answer.
package wait

import (
	"context"
	"fmt"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// BeforeDeadline is volume.BeforeDeadline: the RPC server has applied it to a context of an RPC already.
func BeforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return volume.BeforeDeadline(ctx)
}

// Sleep waits for d. It returns false if ctx ended first or ends at the same moment.
func Sleep(ctx context.Context, d time.Duration) bool {
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

// Ended returns the error for work that the end of ctx cut short: DeadlineExceeded or Canceled.
func Ended(ctx context.Context, format string, args ...any) *volume.Error {
	return volume.Errorf(volume.KindOf(ctx.Err()), "%s: %w", fmt.Sprintf(format, args...), ctx.Err())
}
