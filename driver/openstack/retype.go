package openstack

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	listTypes    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types"}
	defaultType  = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/types/default"}
	retypeVolume = extendVolume // both are actions, told apart by their bodies
)

// wireType is a volume type as Cinder writes it (Cinder API reference, "Show volume type detail").
type wireType struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	Specs map[string]string `json:"extra_specs"` // absent for who may not read them
}

func (w wireType) volumeType() volume.Type {
	return volume.Type{ID: w.ID, Name: w.Name, Specs: w.Specs}
}

// Types implements volume.TypeCloud.
func (c *Cloud) Types(ctx context.Context) ([]volume.Type, error) {
	var all []volume.Type
	query := url.Values{}
	for {
		var answer struct {
			Types []wireType `json:"volume_types"`
			Links []struct {
				Rel string `json:"rel"`
			} `json:"volume_type_links"`
		}
		err := c.do(ctx, request{call: listTypes, verb: "list types", object: "the volume types", query: query, ok: http.StatusOK, into: &answer})
		if err != nil {
			return nil, err
		}
		for _, t := range answer.Types {
			all = append(all, t.volumeType())
		}
		if len(answer.Links) == 0 || len(answer.Types) == 0 {
			return all, nil
		}
		query.Set("marker", answer.Types[len(answer.Types)-1].ID)
	}
}

// DefaultType implements volume.TypeCloud.
func (c *Cloud) DefaultType(ctx context.Context) (volume.Type, error) {
	var answer struct {
		Type wireType `json:"volume_type"`
	}
	err := c.do(ctx, request{call: defaultType, verb: "read default type", object: "the default volume type", ok: http.StatusOK, into: &answer})
	return answer.Type.volumeType(), err
}

// Retype implements volume.TypeCloud. The policy is always sent: what Cinder does without one is for Cinder to change.
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
