package volume

import (
	"context"
	"slices"
	"strings"
)

// Type is what Cinder says of one volume type.
type Type struct {
	ID, Name string
	// Specs are the extra specs that the cloud shows us: by default multiattach, replication_enabled and
	// RESKEY:availability_zones; nil where it shows none.
	Specs map[string]string
}

// Extra specs that say something to the driver (Cinder admin guide, "Volume multi-attach", "Availability-zone types",
// "Capacity based quality of service" for the sizes, which are whole GiB).
const (
	specMultiattach = "multiattach"
	specZones       = "RESKEY:availability_zones"
	specMinimum     = "provisioning:min_vol_size"
	specMaximum     = "provisioning:max_vol_size"
)

// singleServer reports whether the type is known to allow one server only.
func (t Type) singleServer() bool { return t.Specs != nil && t.Specs[specMultiattach] != "<is> True" }

// anyOf reports whether volumes of the type may be in one of the zones; "" is any zone.
func (t Type) anyOf(zones []string) bool {
	allowed := t.Specs[specZones]
	if allowed == "" || slices.Contains(zones, "") {
		return true
	}
	return slices.ContainsFunc(strings.Split(allowed, ","), func(a string) bool {
		return slices.ContainsFunc(zones, func(zone string) bool { return sameZone(strings.TrimSpace(a), zone) })
	})
}

// TypeCloud is what the domain asks of Cinder about volume types.
type TypeCloud interface {
	// Types reads the volume types that the project may use. GET /v3/types.
	Types(ctx context.Context) ([]Type, error)
	// DefaultType reads the type of volumes made without one; NotFound when there is none. GET /v3/types/default.
	DefaultType(ctx context.Context) (Type, error)
	// Retype asks Cinder to give a volume another type, by the type's id; migrate allows it to copy the volume to another
	// backend. A volume that is of that type already is refused. POST /v3/volumes/{id}/action, os-retype.
	Retype(ctx context.Context, id ID, typeID string, migrate bool) error
}

// Quota is a limit of a project and what of it is used; Limit -1 is none.
type Quota struct {
	Limit, InUse, Reserved int64
}

// free is what is left; unlimited reports that nothing bounds it.
func (q Quota) free() (n int64, unlimited bool) {
	return max(0, q.Limit-q.InUse-q.Reserved), q.Limit < 0
}

// QuotaCloud is what the domain asks of Cinder about the room a project has.
type QuotaCloud interface {
	// Quotas reads the project's quotas by Cinder's names: gigabytes, volumes, per_volume_gigabytes, gigabytes_TYPE, …
	// GET /v3/os-quota-sets/{project}?usage=true.
	Quotas(ctx context.Context) (map[string]Quota, error)
}
