package openstack

import (
	"context"
	"net/http"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Extend implements volume.Cloud.
func (c *Cloud) Extend(ctx context.Context, id volume.ID, size volume.Size, attached bool) error {
	type body struct {
		Size int `json:"new_size"`
	}
	r := request{
		call: extendVolume, verb: "extend volume", object: "volume " + string(id) + " to " + size.String(), ids: []string{string(id)},
		ok: http.StatusAccepted, body: map[string]body{"os-extend": {size.RoundUp()}},
	}
	if attached {
		r.call = extendAttachedVolume
	}
	return c.do(ctx, r)
}
