package volumetest

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// typed are the types, quotas and faults of retypes of a Cloud.
type typed struct {
	VolumeTypes []volume.Type
	Standard    volume.Type // the default type
	QuotaSet    map[string]volume.Quota
	Stubborn    bool // Cinder accepts a retype and changes nothing
}

func (c *Cloud) Types(context.Context) ([]volume.Type, error) {
	return c.VolumeTypes, c.Called("Types")
}

func (c *Cloud) DefaultType(context.Context) (volume.Type, error) {
	if err := c.Called("DefaultType"); err != nil {
		return volume.Type{}, err
	}
	if c.Standard.Name == "" {
		return volume.Type{}, volume.Errorf(volume.NotFound, "no default type")
	}
	return c.Standard, nil
}

func (c *Cloud) Quotas(context.Context) (map[string]volume.Quota, error) {
	return c.QuotaSet, c.Called("Quotas")
}

func (c *Cloud) Retype(_ context.Context, id volume.ID, typeID string, migrate bool) error {
	if err := c.Called("Retype", id, typeID, migrate); err != nil {
		return err
	}
	before := volume.Available
	c.Change(id, func(v *volume.Volume) { before, v.Status = v.Status, "retyping" })
	c.Later(id, func(v *volume.Volume) {
		v.Status = before
		if c.Outcome != "" {
			v.Status = c.Outcome
		}
		for _, t := range c.VolumeTypes {
			if t.ID == typeID && !c.Stubborn {
				v.Type = t.Name
			}
		}
	})
	return nil
}

// VolumeZones returns ZoneNames.
func (c *Cloud) VolumeZones(context.Context) ([]string, error) {
	if err := c.Called("VolumeZones"); err != nil {
		return nil, err
	}
	return c.ZoneNames, nil
}
