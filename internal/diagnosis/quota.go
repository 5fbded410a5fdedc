package diagnosis

import (
	"fmt"
	"strings"
)

// full reports whether a quota has no room for so many more.
func (q Quota) full(need int) bool { return q.Limit >= 0 && q.InUse+q.Reserved+need > q.Limit }

// fullQuotas names the quotas that have no room for the volume of the claim. Quotas of a volume type have the type in their name.
func (s *walk) fullQuotas() string {
	if s.Cloud == nil {
		return ""
	}
	const gib = 1 << 30
	size := int((s.Claim.Spec.Resources.Requests.Storage().Value() + gib - 1) / gib)
	var full []string
	for _, name := range sortedKeys(s.Cloud.Quota) {
		need := 0
		switch resource, _, _ := strings.Cut(name, "_"); resource {
		case "volumes":
			need = 1
		case "gigabytes":
			need = size
		}
		if q := s.Cloud.Quota[name]; need > 0 && q.full(need) {
			full = append(full, fmt.Sprintf("quota %s is %d, of which %d are used or reserved", name, q.Limit, q.InUse+q.Reserved))
		}
	}
	return strings.Join(full, ", ")
}
