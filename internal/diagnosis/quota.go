package diagnosis

import (
	"fmt"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// full reports whether a quota has no room for so many more.
func (q Quota) full(need int) bool { return q.Limit >= 0 && q.InUse+q.Reserved+need > q.Limit }

// fullQuotas names the quotas that have no room for the volume of the claim. Quotas of a volume type have the type in their name; those of
// another type than that of the class say nothing about the volume. If the class names none, or an ID, the type is not known.
func (s *walk) fullQuotas() string {
	if s.Cloud == nil {
		return ""
	}
	const gib = 1 << 30
	size := int((s.Claim.Spec.Resources.Requests.Storage().Value() + gib - 1) / gib)
	class := ""
	if s.Class != nil {
		class = s.Class.Parameters["type"]
	}
	var full []string
	for _, name := range sortedKeys(s.Cloud.Quota) {
		need := 0
		resource, volumeType, _ := strings.Cut(name, "_")
		switch {
		case volumeType != "" && class != "" && !shell.IsID(class) && volumeType != class:
		case resource == "volumes":
			need = 1
		case resource == "gigabytes":
			need = size
		}
		if q := s.Cloud.Quota[name]; need > 0 && q.full(need) {
			full = append(full, fmt.Sprintf("quota %s is %d, of which %d are used or reserved", name, q.Limit, q.InUse+q.Reserved))
		}
	}
	return strings.Join(full, ", ")
}
