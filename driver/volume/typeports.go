package volume

import "context"

// Type is what Cinder says of one volume type.
type Type struct {
	ID, Name string
	// Specs are the extra specs that the cloud shows us: by default multiattach, replication_enabled and
	// RESKEY:availability_zones; nil where it shows none.
	Specs map[string]string
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

// QuotaCloud is what the domain asks of Cinder about the room a project has.
type QuotaCloud interface {
	// Quotas reads the project's quotas by Cinder's names: gigabytes, volumes, per_volume_gigabytes, gigabytes_TYPE, …
	// GET /v3/os-quota-sets/{project}?usage=true.
	Quotas(ctx context.Context) (map[string]Quota, error)
}

// ZoneCloud is what the domain asks of a cloud's zones. Methods and errors are as Cloud's.
type ZoneCloud interface {
	// VolumeZones reads the names of Cinder's zones, also of those that are not available at the moment.
	// GET /v3/os-availability-zone.
	VolumeZones(ctx context.Context) ([]string, error)
}
