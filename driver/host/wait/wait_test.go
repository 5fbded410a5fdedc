package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			timeout, sleep time.Duration
			want           bool
		}{{time.Minute, time.Second, true}, {time.Second, time.Second, false}, {time.Second, time.Minute, false}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			began := time.Now()
			if got := Sleep(ctx, c.sleep); got != c.want || time.Since(began) != min(c.timeout, c.sleep) {
				t.Errorf("%+v: got %t after %s", c, got, time.Since(began))
			}
			if err := Ended(ctx, "read %s", "x"); !c.want && (!volume.Is(err, volume.DeadlineExceeded) || err.Error() != "read x: context deadline exceeded") {
				t.Errorf("want the error of the deadline, got %v", err)
			}
			cancel()
		}
	})
}
