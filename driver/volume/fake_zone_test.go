package volume

import "context"

// VolumeZones gives the zones of c; without any, the cloud does not tell.
func (c *fakeCloud) VolumeZones(context.Context) ([]string, error) {
	if err := c.called("VolumeZones"); err != nil {
		return nil, err
	}
	return c.zones, nil
}
