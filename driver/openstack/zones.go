package openstack

import (
	"context"
	"net/http"
	"slices"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// VolumeZones implements volume.ZoneCloud.
func (c *Cloud) VolumeZones(ctx context.Context) ([]string, error) {
	answer := keyed[cloud.Items[struct {
		Name string `json:"zoneName"`
	}]]{key: "availabilityZoneInfo"}
	err := c.do(ctx, request{call: listVolumeZones, verb: "list volume zones", object: "Cinder's zones", ok: http.StatusOK, into: &answer})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, zone := range answer.Value {
		names = append(names, zone.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
