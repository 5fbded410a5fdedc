package observe

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestRecentRemovesOldReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recent
		r.Put(volume.Volume{ID: "old"})
		time.Sleep(recentAge + 1)
		r.Put(volume.Volume{ID: "other"})
		if len(r.readings) != 1 {
			t.Errorf("kept: %v", r.readings)
		}
	})
}
