package provision

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func service(c *cloudtest.Cloud) *Service { return New(c, c, Options{Owner: cloudtest.TestOwner}) }

// zoned makes a cloud whose Cinder has these zones; the first is the default zone.
func zoned(zones ...string) func(*openstacksim.Config) {
	return func(config *openstacksim.Config) { config.VolumeZones = zones }
}

// sourceVolume is the volume of snapshots in a zone whose name is no label.
func sourceVolume() volume.Volume {
	v := cloudtest.SourceVolume
	v.Zone = "az 2"
	return v
}

// wantByExtendStatus checks the result of an expansion or a retype of a volume in that status, and whether its request was sent.
func wantByExtendStatus(t *testing.T, status volume.Status, err error, sent bool) {
	t.Helper()
	cloudtest.WantStep(t, status.Meaning().Extend, err, sent)
	if sent && status != volume.Available && status != volume.InUse {
		t.Error("the request was sent")
	}
}
