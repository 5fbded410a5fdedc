package provision

import (
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Extra specs that the driver reads (Cinder admin guide, "Volume multi-attach" and "Availability-zone types"). The sizes are in GiB ("Capacity
// based quality of service").
const (
	specMultiattach = "multiattach"
	specZones       = "RESKEY:availability_zones"
	specMinimum     = "provisioning:min_vol_size"
	specMaximum     = "provisioning:max_vol_size"
)

// singleAttach reports whether a volume of the type certainly allows one server only. A cloud that hides the extra specs leaves it open.
func singleAttach(t volume.Type) bool {
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
