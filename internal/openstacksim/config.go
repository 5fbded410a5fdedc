package openstacksim

import "time"

// Config is the configuration of a simulated cloud. Default returns a useful one; change it before New.
type Config struct {
	// Seed is the seed of the IDs of new objects: the same requests in the same order give the same IDs.
	Seed   uint64
	Region string
	// TokenLifetime is how long a token is valid. The default of Keystone is a day.
	TokenLifetime time.Duration
	// UnversionedEndpoints puts endpoints without a version into the catalog (…/volume) instead of …/volume/v3/PROJECT.
	UnversionedEndpoints bool
	// VolumeServiceType and ComputeServiceType are the types that the services use to check access rules (service_type of the
	// Keystone middleware). "" means that the operator did not set it: then every request with access rules gets 401.
	VolumeServiceType, ComputeServiceType string
	// VolumeMicroversion and ComputeMicroversion are the highest that Cinder and Nova have; "" is that of the real bed.
	VolumeMicroversion, ComputeMicroversion string
	// MissingServices are the services that the catalog does not list: "compute", "block-storage".
	MissingServices []string
	// NoBackupService leaves cinder-backup out of Cinder's services.
	NoBackupService bool
	// CephBackups makes cinder-backup store in Ceph, as seen on Epoxy. The backups of the snapshots of a volume then share one image. A volume
	// that Cinder makes from a backup has shifted data.
	CephBackups bool
	// PageSize is the longest list in one reply (osapi_max_limit of Cinder); 0 means 1000.
	PageSize int

	Projects               []Project
	Users                  []User
	ApplicationCredentials []ApplicationCredential

	// VolumeZones are the zones of Cinder; the first is its default zone. ComputeZones are the zones of Nova.
	VolumeZones, ComputeZones []string
	// UnavailableVolumeZones and UnavailableComputeZones are those of the zones that are listed as not available.
	UnavailableVolumeZones, UnavailableComputeZones []string
	// ZoneFallback is allow_availability_zone_fallback of Cinder: an unknown zone silently becomes the default zone.
	ZoneFallback bool
	// SameZoneAttach is [cinder]cross_az_attach = false of Nova: Nova refuses to attach across zones.
	SameZoneAttach bool
	// MaxDisks is how many disks Nova attaches to a server, with the root disk; 0 means 26, the names of virtio-blk.
	MaxDisks int

	VolumeTypes []VolumeType
	// DefaultVolumeType is the type of volumes whose request names none.
	DefaultVolumeType string
	GroupTypes        []GroupType
	Servers           []Server

	// Latency is how long each operation takes; a missing operation takes no time.
	Latency map[Operation]time.Duration
}

// Project is a Keystone project. Quota holds the limits of Cinder that differ from the defaults, by resource ("volumes",
// "gigabytes_fast"); -1 is unlimited.
type Project struct {
	ID, Name string
	Quota    map[string]int
}

// User is a Keystone user of the domain Default. Its roles (admin, member, reader) are by project name.
type User struct {
	ID, Name, Password string
	Roles              map[string][]string
}

// ApplicationCredential allows its holder to act as User in Project with Roles. An empty list of AccessRules means no
// restriction.
type ApplicationCredential struct {
	ID, Name, Secret string
	User, Project    string // names
	Roles            []string
	AccessRules      []AccessRule
	Unrestricted     bool
	ExpiresAt        time.Time // zero: never
	spent            bool
}

// AccessRule allows one method on paths of one service, matched as the Keystone middleware does. "*" and "{name}" match one path
// segment, "**" any number. A path begins with the version of the service: /v3/{project}/volumes.
type AccessRule struct {
	Service, Method, Path string
}

// VolumeType is a Cinder volume type. Administrators and members of Projects (names) see private types.
type VolumeType struct {
	ID, Name, Description string
	ExtraSpecs            map[string]string
	Private               bool
	Projects              []string
	Encryption            *Encryption // nil: not encrypted
	CreatedAt             time.Time
}

// Encryption is how volumes of a type are encrypted. KeySize is in bits; Location is front-end or back-end.
type Encryption struct {
	Provider, Cipher, Location string
	KeySize                    int `yaml:"keySize"`
}

// GroupType is a Cinder generic volume group type.
type GroupType struct {
	ID, Name, Description string
	Specs                 map[string]string
}

// Server is a Nova server. An empty Status means ACTIVE. TaskState is the task in progress, or empty.
type Server struct {
	ID, Name, Project, Zone string // Project is the name of a project
	Status, TaskState       string
	Metadata                map[string]string
	Tags                    []string
	CreatedAt               time.Time
}

// Default is the demo cloud. It has two zones for Cinder and Nova, and the types standard (default), fast, multiattach and
// __DEFAULT__. The projects are admin, demo and other. The servers node-az1 and node-az2 belong to demo. Every call returns the
// same IDs.
func Default() Config {
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := func(zone string) Server {
		name := "node-" + zone
		return Server{ID: FixedID("server", name), Name: name, Project: "demo", Zone: zone, Metadata: map[string]string{"role": "k8s-node"}, CreatedAt: born}
	}
	volumeType := func(name, description string, specs map[string]string) VolumeType {
		return VolumeType{ID: FixedID("type", name), Name: name, Description: description, ExtraSpecs: specs, CreatedAt: born}
	}
	user := func(name, password string, roles map[string][]string) User {
		return User{ID: FixedHex("user", name), Name: name, Password: password, Roles: roles}
	}
	return Config{
		Region: "RegionOne", TokenLifetime: 24 * time.Hour,
		VolumeServiceType: "volumev3", ComputeServiceType: "compute", // as Cinder calls itself
		Projects: []Project{
			{ID: FixedHex("project", "admin"), Name: "admin"},
			{ID: FixedHex("project", "demo"), Name: "demo", Quota: map[string]int{
				"volumes": 300, "gigabytes": 20000, "snapshots": 200, "backups": 50, "backup_gigabytes": 2000, "groups": 20,
				"volumes_fast": 50, "gigabytes_fast": 1000, "snapshots_fast": 20,
			}},
			{ID: FixedHex("project", "other"), Name: "other"},
		},
		Users: []User{
			user("admin", "sim-admin", map[string][]string{"admin": {"admin"}}),
			user("demo-admin", "sim-demo-admin", map[string][]string{"demo": {"admin"}}),
			user("demo", "sim-demo", map[string][]string{"demo": {"member"}}),
			user("demo-reader", "sim-demo-reader", map[string][]string{"demo": {"reader"}}),
			user("other", "sim-other", map[string][]string{"other": {"member"}}),
		},
		ApplicationCredentials: []ApplicationCredential{
			{ID: FixedHex("application-credential", "csi"), Name: "csi", Secret: "sim-appcred-secret", User: "demo", Project: "demo", Roles: []string{"member"}},
		},
		VolumeZones: []string{"az1", "az2"}, ComputeZones: []string{"az1", "az2"},
		VolumeTypes: []VolumeType{
			{ID: FixedID("type", "__DEFAULT__"), Name: "__DEFAULT__", Description: "Default Volume Type", CreatedAt: born.Add(-time.Minute)},
			volumeType("standard", "default type", map[string]string{"volume_backend_name": "standard"}),
			volumeType("fast", "second pool", map[string]string{"volume_backend_name": "fast", "sim:tier": "fast"}),
			volumeType("multiattach", "attach to several servers", map[string]string{"volume_backend_name": "standard", "multiattach": "<is> True"}),
		},
		DefaultVolumeType: "standard",
		GroupTypes: []GroupType{
			{ID: FixedID("group-type", "sim-group"), Name: "sim-group", Description: "generic volume groups"},
			{
				ID: FixedID("group-type", "default_cgsnapshot_type"), Name: "default_cgsnapshot_type",
				Description: "Default group type for migrating cgsnapshot", Specs: map[string]string{"consistent_group_snapshot_enabled": "<is> True"},
			},
		},
		Servers: []Server{server("az1"), server("az2")},
		Latency: defaultLatency(),
	}
}
