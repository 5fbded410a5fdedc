package volumetest

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Extend makes the volume larger after one second.
func (c *Cloud) Extend(_ context.Context, id volume.ID, size volume.Size, attached bool) error {
	if err := c.Called("Extend", id, attached); err != nil {
		return err
	}
	c.Change(id, func(v *volume.Volume) { v.Status = "extending" })
	c.Later(id, func(v *volume.Volume) {
		v.Status = volume.InUse
		if !attached {
			v.Status = volume.Available
		}
		if c.Outcome != "" {
			v.Status = c.Outcome
			return
		}
		v.Size = size
	})
	return nil
}
