package status

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// A caller may begin to wait before Run does, at the start of the driver. Its deadline ends the wait all the same.
func TestADeadlineEndsAWaitThatNobodyPollsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud().becomes(volume.Available, 0)
		h := NewHub(c)
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin, ended := time.Now(), make(chan error, 1)
		go func() { _, err := h.Await(soon, "v", available); ended <- err }()
		select {
		case err := <-ended:
			if !volume.Is(err, volume.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read it yet") || time.Since(begin) != 5*time.Second {
				t.Errorf("%v after %v, want the deadline after 5 s", err, time.Since(begin))
			}
		case <-time.After(time.Minute):
			t.Error("the wait goes on after its deadline")
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = h.Run(ctx) }()
		if _, err := h.Await(t.Context(), "v", available); err != nil {
			t.Errorf("once the hub runs: %v", err)
		}
		stop()
	})
}

// A caller may take long over one result, as in a slow read of its own. The others get theirs meanwhile.
func TestACallerThatIsBusyWithAResultDelaysNobody(t *testing.T) {
	t.Parallel()
	const busy = time.Minute
	inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, 10*time.Second) }, func(t *testing.T, h *Hub, c *cloudOf) {
		slow := make(chan error, 1)
		go func() {
			_, err := h.Await(t.Context(), "slow", func(v volume.Volume, ok bool) (bool, error) {
				time.Sleep(busy)
				return available(v, ok)
			})
			slow <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), busy/2)
		defer cancel()
		if _, err := h.Await(ctx, "v", available); err != nil || time.Since(c.begin) > 12*time.Second {
			t.Errorf("the other caller: %v after %v, want the change of second 10 within two seconds", err, time.Since(c.begin))
		}
		if err := <-slow; err != nil || time.Since(c.begin) > 2*busy+time.Second {
			t.Errorf("the busy caller: %v after %v, want the newest result after its first", err, time.Since(c.begin))
		}
	})
}

// answering is a cloud that counts the reads which it has not answered yet.
type answering struct {
	*cloudOf
	unanswered atomic.Int32
}

func (a *answering) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	a.unanswered.Add(1)
	defer a.unanswered.Add(-1)
	return a.cloudOf.Volume(ctx, id)
}

// The driver closes its connections to the cloud after Run, so no request may begin or go on then.
func TestRunReturnsAfterItsLastCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &answering{cloudOf: newCloud().becomes(volume.Available, time.Hour)}
		c.latency = 10 * time.Second // the fake does not look at the context
		h := NewHub(c)
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		waited := make(chan error, 1)
		go func() { _, err := h.Await(t.Context(), "v", available); waited <- err }()
		if err := h.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v", err)
		}
		if c.count() == 0 || c.unanswered.Load() != 0 {
			t.Errorf("Run returned with %d of %d reads unanswered", c.unanswered.Load(), c.count())
		}
		if err := <-waited; !volume.Is(err, volume.Unavailable) {
			t.Errorf("the caller that waited: %v", err)
		}
	})
}
