package snapshot

import (
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func snapshots(c *cloudtest.Cloud) *Service {
	return New(c, c, c.SnapshotWaiter, c.BackupWaiter, Options{Owner: cloudtest.TestOwner})
}

// pagesOfThree makes a cloud that lists at most three objects in one answer.
func pagesOfThree(config *openstacksim.Config) { config.PageSize = 3 }
