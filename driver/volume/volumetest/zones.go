package volumetest

import "context"

// VolumeZones gives the zones of c; without any, the cloud does not tell.
func (c *Cloud) VolumeZones(context.Context) ([]string, error) {
	if err := c.Called("VolumeZones"); err != nil {
		return nil, err
	}
	return c.ZoneNames, nil
}
