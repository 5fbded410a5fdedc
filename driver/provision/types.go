package provision

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Extra specs that say something to the driver (Cinder admin guide, "Volume multi-attach", "Availability-zone types",
// "Capacity based quality of service" for the sizes, which are whole GiB).
const (
	specMultiattach = "multiattach"
	specZones       = "RESKEY:availability_zones"
	specMinimum     = "provisioning:min_vol_size"
	specMaximum     = "provisioning:max_vol_size"
)

// singleServer reports whether the type is known to allow one server only.
func singleServer(t volume.Type) bool {
	return t.Specs != nil && t.Specs[specMultiattach] != "<is> True"
}

// allowsAnyOf reports whether volumes of the type may be in one of the zones; "" is any zone.
func allowsAnyOf(t volume.Type, zones []string) bool {
	allowed := t.Specs[specZones]
	if allowed == "" || slices.Contains(zones, "") {
		return true
	}
	return slices.ContainsFunc(strings.Split(allowed, ","), func(a string) bool {
		return slices.ContainsFunc(zones, func(zone string) bool { return sameZone(strings.TrimSpace(a), zone) })
	})
}

// freeOf is what is left; unlimited reports that nothing bounds it.
func freeOf(q volume.Quota) (n int64, unlimited bool) {
	return max(0, q.Limit-q.InUse-q.Reserved), q.Limit < 0
}
