package openstack

import (
	"fmt"
	"net/http"
	"strings"
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

// The first errors of an object name the cause: the later ones follow from it. A cloud chooses how many there are.
func TestAFailureJoinsItsFirstErrors(t *testing.T) {
	t.Parallel()
	message := func(level string, i int) string {
		return fmt.Sprintf(`{"message_level": %q, "user_message": "m%02d", "created_at": "2026-11-28T12:00:%02d"}`, level, i, i)
	}
	var all, want []string
	for i := range 20 {
		if i < mostTexts {
			want = append(want, fmt.Sprintf("m%02d", i))
		}
		all = append(all, message("INFO", 40-i), message("ERROR", 19-i), message("ERROR", 19-i))
	}
	c, _ := connect(t, answer{status: 200, body: `{"messages": [` + strings.Join(all, ",") + "]}"})
	if got, err := c.Failure(t.Context(), volumeID); err != nil || got != strings.Join(want, "; ") || len(want) != 16 {
		t.Errorf("%v: want %d of them, got %q", err, len(want), got)
	}
}
