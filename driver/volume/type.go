package volume

// Type is a volume type of Cinder (Cinder API reference, "Volume types").
type Type struct {
	ID, Name string
	// Specs are the extra specs that the cloud shows to users, by default multiattach, replication_enabled and RESKEY:availability_zones. It is
	// nil if the cloud shows none.
	Specs map[string]string
}

// Quota is a limit of a project and its usage (Cinder API reference, "Quota sets"). The quota name gives the unit. Limit -1 means no limit.
type Quota struct {
	Limit, InUse, Reserved int64
}
