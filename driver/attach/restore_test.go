package attach

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// The driver created the volume to restore a backup into it, and has not done that yet. A pod would see an empty disk, and a restore would
// overwrite what it writes.
func TestAVolumeThatWaitsForItsBackupIsNotAttached(t *testing.T) {
	for value, attached := range map[string]bool{string(cloudtest.SnapshotID(1)): false, contract.RestoreDone: true} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available, Size: volume.GiB(1), Metadata: map[string]string{contract.MetadataRestore: value}})
			_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
			if attached {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if cloudtest.WantKind(t, err, volume.Busy, false); !strings.Contains(err.Error(), value) || c.CountPrefix("Attach ") != 0 {
				t.Errorf("%v after %v", err, c.Calls)
			}
		})
	}
}
