// Package v1alpha1 holds the documents of the generator: Inventory (what a cloud offers), Distribution (what its operator wants)
// and Plan (what was decided and why). It has types, defaults and strict decoding, and makes no decisions.
package v1alpha1

// APIVersion is the apiVersion of every document of this package.
const APIVersion = "generator.cinder-csi.io/v1alpha1"

// The kinds of document.
const (
	KindInventory    = "Inventory"
	KindDistribution = "Distribution"
	KindPlan         = "Plan"
)

// State says how much is known of a fact. Denied and Unsupported are stable answers; Failed is an outage.
type State string

// The states of a fact.
const (
	Known       State = "known"
	Denied      State = "denied"      // a policy or an access rule forbids the question
	Unsupported State = "unsupported" // this cloud does not have it
	Failed      State = "failed"      // the question was not answered
)

// Fact is one thing the inspector asked the cloud, and what became of the question. Reason is empty when the value is known.
// A list that is known to be empty is emitted, one that is not known is left out.
type Fact[T any] struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	Value  T      `json:"value,omitzero"`
}

// VersionsOf is what is known of the microversions of a service. In an inventory of an earlier generator, the versions of all services are
// one fact.
func (i Inventory) VersionsOf(service string) Fact[Service] {
	s := i.Services.Value[service]
	switch {
	case s.Versions != "":
		return Fact[Service]{State: s.Versions, Reason: s.Reason}
	case i.Services.State != Known && s.MaxMicroversion == "":
		return Fact[Service]{State: i.Services.State, Reason: i.Services.Reason}
	}
	return Fact[Service]{State: Known, Value: s}
}

// Inventory is what one cloud offers one project in one region. It holds no secret. Its facts change only if the operator of the
// cloud changes something, except usage in Quota and Available of zones, which no decision reads.
type Inventory struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Simulated says that this is no real cloud; what is generated from it says so too.
	Simulated bool  `json:"simulated,omitempty"`
	Cloud     Cloud `json:"cloud"`

	Services          Fact[map[string]Service] `json:"services"` // by catalog type: identity, compute, block-storage, …
	Zones             Zones                    `json:"zones"`
	VolumeTypes       Fact[[]VolumeType]       `json:"volumeTypes"`       // sorted by name
	DefaultVolumeType Fact[string]             `json:"defaultVolumeType"` // its name; the project's own default wins over the cloud's
	Limits            Fact[Limits]             `json:"limits"`
	Quota             Fact[map[string]Quota]   `json:"quota"` // by resource: volumes, gigabytes, gigabytes_<type>, …
	GroupTypes        Fact[[]string]           `json:"groupTypes"`
	// Backup is absent in inventories that were saved before it was asked for.
	Backup Fact[Backup] `json:"backup,omitzero"`
}

// Cloud identifies the cloud by values that the cloud itself reports, never by a local alias.
type Cloud struct {
	AuthURL   string `json:"authURL"`
	Region    string `json:"region"`
	ProjectID string `json:"projectID"`
}

// Service is one entry of the catalog.
type Service struct {
	Present         bool   `json:"present"`
	MinMicroversion string `json:"minMicroversion,omitempty"`
	MaxMicroversion string `json:"maxMicroversion,omitempty"`
	// Versions is the state of the microversions unless they are known; Reason belongs to it.
	Versions State  `json:"versions,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Endpoint is the URL of the interface in use without its project id; Port is its TCP port, for network policies.
	Endpoint string `json:"endpoint,omitempty"`
	Port     int    `json:"port,omitempty"`
}

// Zones are the zones this project may use: of Nova, and of Cinder. Sorted by name.
type Zones struct {
	Compute Fact[[]Zone] `json:"compute"`
	Volume  Fact[[]Zone] `json:"volume"`
}

// Zone is an availability zone. Available is momentary: no decision reads it.
type Zone struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
}

// ZoneNames are the names of zones, in their order. It is never nil.
func ZoneNames(zones []Zone) []string {
	names := make([]string, 0, len(zones))
	for _, z := range zones {
		names = append(names, z.Name)
	}
	return names
}

// VolumeType is a Cinder volume type as a project member sees it. Facts that only administrators can read are pointers or
// empty, and no decision reads them.
type VolumeType struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Public      bool     `json:"public"`
	Description string   `json:"description,omitempty"`
	Multiattach bool     `json:"multiattach"`
	Zones       []string `json:"zones,omitempty"` // from the extra spec RESKEY:availability_zones; empty: every zone
	Replication bool     `json:"replication"`
	// Specs is the state of Multiattach, Zones and Replication unless it is known; with a state, they are unknown and not false.
	// Unsupported: this Cinder is older than Xena and shows them to administrators only.
	Specs State `json:"specs,omitempty"`
	// Encryption is denied to members by Cinder's default policy.
	Encryption Fact[Encryption] `json:"encryption"`
}

// Encryption is how volumes of a type are encrypted; Provider is empty when they are not.
type Encryption struct {
	Provider string `json:"provider,omitempty"`
	Cipher   string `json:"cipher,omitempty"`
	Location string `json:"location,omitempty"` // front-end | back-end
}

// Backup is what Cinder says about backups. Known means that the project may list its backups, and no more: Cinder answers that from
// its database, with or without a backup service. A member has no question whose answer shows that the service runs.
type Backup struct {
	// Made says that the project has a finished backup, so that the service worked once. False says nothing. It is usage: no
	// decision reads it.
	Made bool `json:"made"`
	// Service is up, down or absent: the state of cinder-backup in Cinder's list of services. Cinder's default policy denies that list
	// to members: no decision reads it.
	Service Fact[string] `json:"service"`
}

// Limits are the project's absolute limits; -1 is unlimited.
type Limits struct {
	Volumes         int `json:"volumes"`
	Gigabytes       int `json:"gigabytes"`
	Snapshots       int `json:"snapshots"`
	Backups         int `json:"backups"`
	BackupGigabytes int `json:"backupGigabytes"`
}

// Quota is one resource's limit and use; a limit of -1 is unlimited.
type Quota struct {
	Limit int `json:"limit"`
	InUse int `json:"inUse"`
}
