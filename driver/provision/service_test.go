package provision

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func service(c *volumetest.Cloud) *Service { return New(c, c, Options{Owner: volumetest.TestOwner}) }

// wantByExtendStatus checks the result of an expansion or a retype of a volume in that status, and whether its request was sent.
func wantByExtendStatus(t *testing.T, status volume.Status, err error, sent bool) {
	t.Helper()
	volumetest.WantStep(t, status.Meaning().Extend, err, sent)
	if sent && status != volume.Available && status != volume.InUse {
		t.Error("the request was sent")
	}
}
