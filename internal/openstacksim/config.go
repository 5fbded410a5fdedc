package openstacksim

import "time"

// Config is a cloud to simulate. Default gives a useful one; change what matters before New.
type Config struct {
	// Seed starts the source of the ids of new objects: the same calls in the same order give the same ids.
	Seed   uint64
	Region string
	// TokenLifetime is how long a token is good for; Keystone's default is a day.
	TokenLifetime time.Duration
	// UnversionedEndpoints puts service roots into the catalog (…/volume) instead of versioned URLs (…/volume/v3/PROJECT).
	UnversionedEndpoints bool
	// VolumeServiceType and ComputeServiceType are what the services take themselves for when they check access rules (the
	// service_type of Keystone's middleware). Empty means that the operator forgot to set it: every request under access rules
	// is then 401.
	VolumeServiceType, ComputeServiceType string

	Projects               []Project
	Users                  []User
	ApplicationCredentials []ApplicationCredential

	// VolumeZones are Cinder's zones; the first is its default zone. ComputeZones are Nova's.
	VolumeZones, ComputeZones []string
	// ZoneFallback is Cinder's allow_availability_zone_fallback: an unknown zone silently becomes the default zone.
	ZoneFallback bool
	// SameZoneAttach is Nova's [cinder]cross_az_attach = false: attaching across zones is refused.
	SameZoneAttach bool
	// MaxDisks is the most disks Nova attaches to one server, the root disk included; 0 means 26, what virtio-blk names allow.
	MaxDisks int

	VolumeTypes []VolumeType
	// DefaultVolumeType is the name of the type of volumes made without one.
	DefaultVolumeType string
	GroupTypes        []GroupType
	Servers           []Server

	// Latency is how long each operation takes; what is missing takes no time.
	Latency map[Operation]time.Duration
}

// Project is a Keystone project. Quota holds Cinder's limits that differ from its defaults, by resource ("volumes",
// "gigabytes_fast"); -1 is unlimited.
type Project struct {
	ID, Name string
	Quota    map[string]int
}

// User is a Keystone user of the domain Default, with the roles (admin, member, reader) it has on projects, by project name.
type User struct {
	ID, Name, Password string
	Roles              map[string][]string
}

// ApplicationCredential lets its holder act as User on Project with Roles. No AccessRules, or an empty list,
// means no restriction.
type ApplicationCredential struct {
	ID, Name, Secret string
	User, Project    string // names
	Roles            []string
	AccessRules      []AccessRule
	Unrestricted     bool
	ExpiresAt        time.Time // zero: never
	spent            bool
}

// AccessRule allows one method on paths of one service, matched as Keystone's middleware does: "*" and "{name}" stand for one
// path segment, "**" for any number. Paths begin at the service's version: /v3/{project}/volumes.
type AccessRule struct {
	Service, Method, Path string
}

// VolumeType is a Cinder volume type. Private types are seen by administrators only.
type VolumeType struct {
	ID, Name, Description string
	ExtraSpecs            map[string]string
	Private               bool
	CreatedAt             time.Time
}

// GroupType is a Cinder generic volume group type.
type GroupType struct {
	ID, Name, Description string
	Specs                 map[string]string
}

// Server is a Nova server. Status is ACTIVE when empty; TaskState is what Nova is doing to it, empty when nothing.
type Server struct {
	ID, Name, Project, Zone string // Project is a project's name
	Status, TaskState       string
	Metadata                map[string]string
	CreatedAt               time.Time
}

// Default is the demo cloud: two zones on both sides, the types standard (default), fast, multiattach and __DEFAULT__, the
// projects admin, demo and other, and the servers node-az1 and node-az2 of project demo. Every call gives the same ids.
func Default() Config {
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := func(zone string) Server {
		name := "node-" + zone
		return Server{ID: fixedID("server", name), Name: name, Project: "demo", Zone: zone, Metadata: map[string]string{"role": "k8s-node"}, CreatedAt: born}
	}
	volumeType := func(name, description string, specs map[string]string) VolumeType {
		return VolumeType{ID: fixedID("type", name), Name: name, Description: description, ExtraSpecs: specs, CreatedAt: born}
	}
	user := func(name, password string, roles map[string][]string) User {
		return User{ID: fixedHex("user", name), Name: name, Password: password, Roles: roles}
	}
	return Config{
		Region: "RegionOne", TokenLifetime: 24 * time.Hour,
		VolumeServiceType: "volumev3", ComputeServiceType: "compute", // as Cinder calls itself
		Projects: []Project{
			{ID: fixedHex("project", "admin"), Name: "admin"},
			{ID: fixedHex("project", "demo"), Name: "demo", Quota: map[string]int{
				"volumes": 300, "gigabytes": 20000, "snapshots": 200, "backups": 50, "backup_gigabytes": 2000, "groups": 20,
				"volumes_fast": 50, "gigabytes_fast": 1000, "snapshots_fast": 20,
			}},
			{ID: fixedHex("project", "other"), Name: "other"},
		},
		Users: []User{
			user("admin", "sim-admin", map[string][]string{"admin": {"admin"}}),
			user("demo-admin", "sim-demo-admin", map[string][]string{"demo": {"admin"}}),
			user("demo", "sim-demo", map[string][]string{"demo": {"member"}}),
			user("demo-reader", "sim-demo-reader", map[string][]string{"demo": {"reader"}}),
			user("other", "sim-other", map[string][]string{"other": {"member"}}),
		},
		ApplicationCredentials: []ApplicationCredential{
			{ID: fixedHex("application-credential", "csi"), Name: "csi", Secret: "sim-appcred-secret", User: "demo", Project: "demo", Roles: []string{"member"}},
		},
		VolumeZones: []string{"az1", "az2"}, ComputeZones: []string{"az1", "az2"},
		VolumeTypes: []VolumeType{
			{ID: fixedID("type", "__DEFAULT__"), Name: "__DEFAULT__", Description: "Default Volume Type", CreatedAt: born.Add(-time.Minute)},
			volumeType("standard", "default type", map[string]string{"volume_backend_name": "standard"}),
			volumeType("fast", "second pool", map[string]string{"volume_backend_name": "fast", "sim:tier": "fast"}),
			volumeType("multiattach", "attach to several servers", map[string]string{"volume_backend_name": "standard", "multiattach": "<is> True"}),
		},
		DefaultVolumeType: "standard",
		GroupTypes: []GroupType{
			{ID: fixedID("group-type", "sim-group"), Name: "sim-group", Description: "generic volume groups"},
			{
				ID: fixedID("group-type", "default_cgsnapshot_type"), Name: "default_cgsnapshot_type",
				Description: "Default group type for migrating cgsnapshot", Specs: map[string]string{"consistent_group_snapshot_enabled": "<is> True"},
			},
		},
		Servers: []Server{server("az1"), server("az2")},
		Latency: defaultLatency(),
	}
}
