package provision

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// singleAttach reports whether a volume of the type certainly allows one server only. A cloud that hides the extra specs leaves it open.
func singleAttach(t volume.Type) bool {
	return t.Specs != nil && t.Specs[volume.SpecMultiattach] != "<is> True"
}

// allowsAnyOf reports whether volumes of the type may be in one of the zones; "" is any zone.
func allowsAnyOf(t volume.Type, zones []string) bool {
	allowed := t.Specs[volume.SpecZones]
	if allowed == "" || slices.Contains(zones, "") {
		return true
	}
	return slices.ContainsFunc(strings.Split(allowed, ","), func(a string) bool {
		return slices.ContainsFunc(zones, func(zone string) bool { return sameZone(strings.TrimSpace(a), zone) })
	})
}
