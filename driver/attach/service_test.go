package attach

import "github.com/cinder-csi/cinder-csi/driver/volume/volumetest"

func attaching(c *volumetest.Cloud) *Service { return New(c, c, Options{}) }
