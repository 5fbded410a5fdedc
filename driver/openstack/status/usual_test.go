package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestTheFirstQuestionComesWhenItCanHaveHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u usual
		check := func(want time.Duration) {
			t.Helper()
			if got := u.first("attach"); got != want {
				t.Errorf("first question after %v, want %v", got, want)
			}
		}
		wait := func(d time.Duration) {
			begun := time.Now()
			time.Sleep(d)
			u.lasted("attach", begun)
		}
		check(eagerly)
		for range enough {
			wait(time.Second)
		}
		check(900 * time.Millisecond)
		wait(2 * time.Second)
		check(900 * time.Millisecond)
		wait(10 * time.Millisecond)
		check(eagerly)
		for range kept {
			wait(time.Hour)
		}
		check(lazily)
		if got := u.first("detach"); got != eagerly {
			t.Errorf("another purpose: %v", got)
		}
		u.lasted("", time.Now().Add(-time.Hour))
		if got := u.first(""); got != eagerly {
			t.Errorf("no purpose: %v", got)
		}
	})
}

func TestOfWaitsAtTheSameTimeTheShortestCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u usual
		for range enough {
			begun := time.Now()
			for range 100 {
				time.Sleep(time.Second)
				u.lasted("create", begun)
			}
		}
		if got := u.first("create"); got != 900*time.Millisecond {
			t.Errorf("first question after %v, want that of the shortest", got)
		}
	})
}

func TestACloudThatBecomesFasterIsFoundOut(t *testing.T) {
	t.Parallel()
	takes := 2 * time.Second
	prepare := func(c *cloudOf) {
		c.status = func(_ volume.ID, at time.Duration) volume.Status {
			if at < takes {
				return volume.Creating
			}
			return volume.Available
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		ctx := volume.WithPurpose(t.Context(), "become available")
		wait := func() (took time.Duration, calls int) {
			c.begin = time.Now()
			before := c.count()
			if _, err := h.Await(ctx, "v", available); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return time.Since(c.begin), c.count() - before
		}
		_, eager := wait()
		for range enough {
			wait()
		}
		if took, calls := wait(); calls*2 > eager || took > takes*11/10 {
			t.Errorf("%d calls in %v once it is known, %d before", calls, took, eager)
		}
		takes = 200 * time.Millisecond
		for range 100 {
			wait()
		}
		if took, _ := wait(); took > takes*3/2 {
			t.Errorf("told after %v of what takes %v by now", took, takes)
		}
	})
}
