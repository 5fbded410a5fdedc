package openstack

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

// A message only explains a failure. With 429 for each, twenty failed creates waited for 32 s.
func TestMessagesThatFailAreNotReadForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := stages(t, memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		})))
		began := time.Now()
		read := func(want int32) {
			t.Helper()
			if _, err := c.Failure(t.Context(), volumeID); !volume.Is(err, volume.Unavailable) || calls.Load() != want {
				t.Errorf("%v after %d requests, want %d", err, calls.Load(), want)
			}
		}
		read(1)
		read(1)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		time.Sleep(messagesPause)
		read(2)
	})
}
