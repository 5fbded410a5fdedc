package volume

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRecentForgetsWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recent
		r.Put(Volume{ID: "old"})
		time.Sleep(recentAge + 1)
		r.Put(Volume{ID: "other"})
		if len(r.readings) != 1 {
			t.Errorf("kept: %v", r.readings)
		}
	})
}
