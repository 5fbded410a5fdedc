package openstack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// maxQuotas is how many quotas the driver keeps: three for each type, and some more.
const maxQuotas = 4 * maxTypes

// Quotas implements volume.QuotaCloud. It skips what is not a quota in the answer: the project id.
func (c *Cloud) Quotas(ctx context.Context) (map[string]volume.Quota, error) {
	var answer struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	err := c.do(ctx, request{
		call: getQuotas, verb: "read quotas", object: "the project's quotas", query: url.Values{"usage": {"true"}}, ok: http.StatusOK, into: &answer, exists: true,
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Set) > maxQuotas {
		return nil, volume.Errorf(volume.Unavailable, "the project has more than %d quotas; the driver ignores the answer, report it to the administrator of the cloud", maxQuotas).
			Cause(cause.CloudAnswer).Op("read quotas")
	}
	quotas := map[string]volume.Quota{}
	for name, raw := range answer.Set {
		var q struct {
			Limit    *int64 `json:"limit"`
			InUse    int64  `json:"in_use"`
			Reserved int64  `json:"reserved"`
		}
		if json.Unmarshal(raw, &q) == nil && q.Limit != nil {
			quotas[name] = volume.Quota{Limit: *q.Limit, InUse: q.InUse, Reserved: q.Reserved}
		}
	}
	return quotas, nil
}
