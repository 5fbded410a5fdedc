package openstack

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// wireType is a volume type in Cinder's JSON (Cinder API reference, "Show volume type detail").
type wireType struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	Specs map[string]string `json:"extra_specs"` // absent without the right to read them
}

func (w wireType) volumeType() volume.Type {
	maps.DeleteFunc(w.Specs, func(key, value string) bool { return len(value) > longestSpecs[key] })
	return volume.Type{ID: w.ID, Name: w.Name, Specs: w.Specs}
}

// longestSpecs are the extra specs that the driver reads, and the most bytes of a value that means something. Each RPC keeps all types.
var longestSpecs = map[string]int{volume.SpecMultiattach: 32, volume.SpecZones: 255, volume.SpecMinimum: 32, volume.SpecMaximum: 32}

// longestType is the most bytes of the ID or name of a type.
const longestType = 255

// maxTypes is how many volume types the driver reads; the largest clouds have a few hundred.
const maxTypes = 1000

// Types implements volume.TypeCloud.
func (c *Cloud) Types(ctx context.Context) ([]volume.Type, error) {
	all, err := paging.All(maxTypes, func(marker string) ([]volume.Type, bool, error) {
		var answer struct {
			Types cloud.Items[wireType] `json:"volume_types"`
			Links links                 `json:"volume_type_links"`
		}
		query := url.Values{}
		if marker != "" {
			query.Set("marker", marker)
		}
		err := c.do(ctx, request{call: listTypes, verb: "list types", object: "the volume types", query: limited(query), ok: http.StatusOK, into: &answer, exists: marker == ""})
		page := slices.DeleteFunc(converted(answer.Types, wireType.volumeType), func(t volume.Type) bool { return max(len(t.ID), len(t.Name)) > longestType })
		return page, len(answer.Links) > 0, err
	}, func(t volume.Type) string { return t.ID })
	return all, endless(err, "list types", "the volume types")
}

// DefaultType implements volume.TypeCloud.
func (c *Cloud) DefaultType(ctx context.Context) (volume.Type, error) {
	answer := keyed[wireType]{key: "volume_type"}
	err := c.do(ctx, request{call: getDefaultType, verb: "read default type", object: "the default volume type", ok: http.StatusOK, into: &answer})
	return answer.Value.volumeType(), err
}

// Retype implements volume.TypeCloud. It always sends a policy, because the default of Cinder may change.
func (c *Cloud) Retype(ctx context.Context, id volume.ID, typeID string, migrate bool) error {
	type body struct {
		Type   string `json:"new_type"`
		Policy string `json:"migration_policy"`
	}
	wanted := body{typeID, contract.PolicyNever}
	if migrate {
		wanted.Policy = contract.PolicyOnDemand
	}
	return c.do(ctx, request{
		call: retypeVolume, verb: "retype volume", object: "volume " + string(id) + " to type " + typeID, ids: []string{string(id)},
		ok: http.StatusAccepted, body: map[string]body{"os-retype": wanted},
	})
}
