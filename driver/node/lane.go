package node

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// grace is how long a call whose context ended is waited for: long enough for work that heeds its context.
const grace = 500 * time.Millisecond

// lanes let one piece of work at a time go on for each volume. The channel is the lock: it holds the table while nobody looks at
// it.
type lanes struct {
	taken chan map[string]string // volume id -> what is done with it
	work  sync.WaitGroup
	log   *slog.Logger
}

func newLanes(log *slog.Logger) *lanes {
	l := &lanes{taken: make(chan map[string]string, 1), log: log}
	l.taken <- map[string]string{}
	return l
}

func (l *lanes) take(id, verb string) error {
	taken := <-l.taken
	defer func() { l.taken <- taken }()
	if other, busy := taken[id]; busy {
		return volume.Errorf(volume.Busy, "another call is working on volume %s (%s); try again", id, other).Op(verb)
	}
	taken[id] = verb
	return nil
}

func (l *lanes) leave(id string) {
	taken := <-l.taken
	delete(taken, id)
	l.taken <- taken
}

// run does work in the volume's lane, or is Busy. Work that is stuck in the kernel (a dead disk, a hung unmount) does not hold the
// caller past its deadline; it holds the lane, so that nobody works beside it.
func (l *lanes) run(ctx context.Context, id, verb string, work func(context.Context) error) error {
	if err := l.take(id, verb); err != nil {
		return err
	}
	done := make(chan error, 1)
	l.work.Go(func() {
		err := l.safely(ctx, id, verb, work)
		l.leave(id) // before the answer, or the next call of the same caller would find the lane taken
		done <- err
	})
	select {
	case err := <-done:
		return volume.WithOp(err, verb)
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return volume.WithOp(err, verb)
	case <-timer.C:
		return volume.Errorf(volume.KindOf(ctx.Err()), "volume %s: the work goes on and may be stuck: %w", id, ctx.Err()).Op(verb)
	}
}

// drain waits for the work that goes on after its caller went, as a file system being made does; no call may come any more.
func (l *lanes) drain(ctx context.Context) {
	idle := make(chan struct{})
	go func() { l.work.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		taken := <-l.taken
		l.log.WarnContext(ctx, "the driver ends while work goes on", "volumes", fmt.Sprint(taken))
		l.taken <- taken
	}
}

// safely turns a panic into an error: the recovery of the server does not reach this goroutine.
func (l *lanes) safely(ctx context.Context, id, verb string, work func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.ErrorContext(ctx, "panic", "operation", verb, "volume", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = volume.Errorf(volume.Unknown, "volume %s: the driver failed in an unforeseen way; its log has the stack", id)
		}
	}()
	return work(ctx)
}
