package openstack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

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
