package attach

import "github.com/cinder-csi/cinder-csi/driver/volume/volumetest"

func newService(c *volumetest.Cloud) *Service { return New(c, c, Options{}) }
