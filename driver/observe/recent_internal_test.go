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

// A cloud may show much metadata of a volume, and many volumes within the age of a reading.
func TestAReadingHasNoMetadata(t *testing.T) {
	var r Recent
	r.Put(volume.Volume{ID: "v", Size: 1, Metadata: map[string]string{"key": "value"}})
	if v, ok := r.Take("v"); !ok || v.Size != 1 || v.Metadata != nil {
		t.Errorf("got %+v, %t", v, ok)
	}
}
