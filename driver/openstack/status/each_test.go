package status

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestEachPollsAtUpstreamsMoments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status volume.Status
		tries  int
		total  time.Duration // upstream's sum of delays
		third  time.Duration // when the third try is
	}{
		"attach": {volume.Attaching, 15, 59200 * time.Millisecond, 2200 * time.Millisecond},
		"detach": {volume.Detaching, 13, 39600 * time.Millisecond, 2200 * time.Millisecond},
		"extend": {"extending", 10, 13600 * time.Millisecond, 2100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.status = func(volume.ID, time.Duration) volume.Status { return tc.status }
			_, err := EachOf(NewHub(c)).Await(t.Context(), "v", available)
			took := time.Since(c.begin).Round(100 * time.Millisecond)
			if !volume.Is(err, volume.DeadlineExceeded) || c.count() != tc.tries || took != tc.total {
				t.Errorf("%s: %v after %d tries and %v, want %d and %v", name, err, c.count(), took, tc.tries, tc.total)
			}
			if got := c.times[2].Round(time.Millisecond); got != tc.third {
				t.Errorf("%s: third try at %v, want %v", name, got, tc.third)
			}
		})
	}
}

func TestEachEndsWithWhatItWaitsForOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud().becomes(volume.Available, 1500*time.Millisecond)
		if _, err := EachOf(NewHub(c)).Await(t.Context(), "v", available); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, time.Second, 2100 * time.Millisecond}
		if diff := cmp.Diff(want, slices.Clone(c.times)); diff != "" {
			t.Error("tries, -want +got\n", diff)
		}
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		c.becomes(volume.Available, time.Hour)
		begin := time.Now()
		if _, err := EachOf(NewHub(c)).Await(short, "v", available); !volume.Is(err, volume.DeadlineExceeded) || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
