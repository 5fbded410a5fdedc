package volume

// Type is a volume type of Cinder (Cinder API reference, "Volume types").
type Type struct {
	ID, Name string
	// Specs are the extra specs that the driver reads, as far as the cloud shows them to users. It is nil if the cloud shows none.
	Specs map[string]string
}

// Extra specs that the driver reads (Cinder admin guide, "Volume multi-attach" and "Availability-zone types"). The sizes are in GiB ("Capacity
// based quality of service").
const (
	SpecMultiattach = "multiattach"
	SpecZones       = "RESKEY:availability_zones"
	SpecMinimum     = "provisioning:min_vol_size"
	SpecMaximum     = "provisioning:max_vol_size"
)

// Quota is a limit of a project and its usage (Cinder API reference, "Quota sets"). The quota name gives the unit. Limit -1 means no limit.
type Quota struct {
	Limit, InUse, Reserved int64
}
