package provision

import "github.com/cinder-csi/cinder-csi/driver/volume/volumetest"

func service(c *volumetest.Cloud) *Service { return New(c, c, Options{Owner: volumetest.TestOwner}) }
