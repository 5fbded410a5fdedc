package status

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Listings of changes contain no volume whose last change is older than they go back. Its waiter must not wait for one.
func TestAVolumeThatChangedBeforeItsWaitBeganIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.latency = append(hundred(), "old"), true, 30*time.Millisecond
		changing := staggered(volume.Creating, volume.Available)
		c.status = func(id volume.ID, at time.Duration) volume.Status {
			switch id {
			case "old":
				return volume.Available
			case "deleted":
				return ""
			}
			return changing(id, at)
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		var others sync.WaitGroup
		others.Go(func() { awaitAll(t.Context(), h, hundred(), available) })
		time.Sleep(5 * time.Second)
		if c.kindOf("changes") == 0 {
			t.Error("the hub does not list changes yet; the test shows nothing")
		}
		for id, done := range map[volume.ID]func(volume.Volume, bool) (bool, error){"old": available, "deleted": gone} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			begin := time.Now()
			if _, err := h.Await(ctx, id, done); err != nil || time.Since(begin) > time.Second {
				t.Errorf("volume %s: %v after %v, want its state within a second", id, err, time.Since(begin))
			}
			cancel()
		}
		others.Wait()
	})
}
