package snapshot

import "github.com/cinder-csi/cinder-csi/driver/volume/volumetest"

func snapshots(c *volumetest.Cloud) *Service {
	return New(c, c, volumetest.SnapshotWaiter{Cloud: c}, volumetest.BackupWaiter{Cloud: c}, Options{Owner: volumetest.TestOwner})
}
