package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// Option describes one key of cloud.conf.
type Option struct {
	Section string
	Key     string // "*" stands for every key: a section that others read
	Kind    string // bool, integer, list, text
	Default string
	Meaning string
}

// Sections of cloud.conf that the driver reads.
const (
	Global       = "Global"
	BlockStorage = "BlockStorage"
	Metadata     = "Metadata"
	Zone         = "Zone" // its subsections are compute zones
)

// The options of cloud.conf outside [Global].
const (
	AttachLimit        = "node-volume-attach-limit"
	AttachReserve      = "node-volume-attach-reserve"
	ForeignVolumes     = "node-foreign-volumes"
	RescanOnResize     = "rescan-on-resize"
	IgnoreZone         = "ignore-volume-az"
	IgnoreMicroversion = "ignore-volume-microversion"
	SearchOrder        = "search-order"
	RequestTimeout     = "request-timeout"
	VolumeZone         = "volume-zone"
)

// Options lists every key of cloud.conf that is known, [Global]'s and those of the cloud controller manager among them: both
// programs are often given the same file.
var Options = []Option{
	{BlockStorage, AttachLimit, "integer", "", "how many volumes a node may have; absent: the node works it out; below 0 or above 256: 256"},
	{BlockStorage, AttachReserve, "integer", "1", "places for disks that a node keeps free when it works out its limit, for a network card plugged later or a disk of others. Added"},
	{BlockStorage, ForeignVolumes, "list", "", "ids of volumes that others attached to nodes, so that they are not counted as the driver's; a disk that a node runs from need not be named. Added"},
	{BlockStorage, RescanOnResize, "bool", "false", "look at a disk's size again before its file system grows; this driver always does"},
	{BlockStorage, IgnoreZone, "bool", "false", "report the zones asked for as a new volume's topology, instead of the volume's own"},
	{BlockStorage, IgnoreMicroversion, "bool", "false", "no effect: the lowest microversion that will do is used"},
	{BlockStorage, "bs-version", "text", "", "no effect: an old key of the in-tree plugin"},
	{BlockStorage, "trust-device-path", "bool", "false", "no effect: an old key of the in-tree plugin"},
	{Metadata, SearchOrder, "list", "configDrive,metadataService,dmi", "where a node looks for its server's id and zone, first to last; dmi is the hardware's UUID, which tells no zone"},
	{Metadata, RequestTimeout, "text", "", "no effect here; the cloud controller manager's"},
	{Zone, VolumeZone, "text", "", "in a section [Zone \"COMPUTE ZONE\"]: the volume zone that serves servers of that compute zone; absent: the one of the same name. Added; upstream's plugin passes such sections over"},
	{"Networking", "*", "", "", "the cloud controller manager's"},
	{"LoadBalancer", "*", "", "", "the cloud controller manager's"},
	{"LoadBalancerClass", "*", "", "", "the cloud controller manager's"},
	{"Route", "*", "", "", "the cloud controller manager's"},
	{"Router", "*", "", "", "the cloud controller manager's"},
	{Global, "auth-url", "text", "", "Keystone's URL"},
	{Global, "user-id", "text", "", "who logs in"},
	{Global, "username", "text", "", "who logs in"},
	{Global, "password", "text", "", "secret"},
	{Global, "tenant-id", "text", "", "project"},
	{Global, "tenant-name", "text", "", "project"},
	{Global, "tenant-domain-id", "text", "", "the project's domain"},
	{Global, "tenant-domain-name", "text", "", "the project's domain"},
	{Global, "user-domain-id", "text", "", "the user's domain"},
	{Global, "user-domain-name", "text", "", "the user's domain"},
	{Global, "domain-id", "text", "", "domain of both"},
	{Global, "domain-name", "text", "", "domain of both"},
	{Global, "application-credential-id", "text", "", "application credential"},
	{Global, "application-credential-name", "text", "", "application credential"},
	{Global, "application-credential-secret", "text", "", "secret"},
	{Global, "trust-id", "text", "", "trust"},
	{Global, "trustee-id", "text", "", "user of the trust"},
	{Global, "trustee-password", "text", "", "secret"},
	{Global, "token", "text", "", "secret"},
	{Global, "region", "text", "", "region of the endpoints"},
	{Global, "os-endpoint-type", "text", "public", "public, internal or admin"},
	{Global, "ca-file", "text", "", "PEM file of the authorities to trust"},
	{Global, "tls-insecure", "bool", "false", "only the word true turns verification off"},
	{Global, "cert-file", "text", "", "client certificate"},
	{Global, "key-file", "text", "", "its key"},
	{Global, "use-clouds", "bool", "false", "take what is missing from clouds.yaml"},
	{Global, "clouds-file", "text", "", "clouds.yaml to read"},
	{Global, "cloud", "text", "", "entry of clouds.yaml"},
}

// Known lists the names of all options, for cloudconf's report of unknown ones.
func Known() []cloudconf.Name {
	names := make([]cloudconf.Name, len(Options))
	for i, o := range Options {
		names[i] = cloudconf.Name{Section: o.Section, Key: o.Key}
	}
	return names
}

// Settings is what cloud.conf says outside [Global].
type Settings struct {
	AttachLimit    int64    // volumes per node; 0 means that the node works it out
	AttachReserve  *int64   // places kept free then; nil means the default
	ForeignVolumes []string // ids of volumes that are not the driver's
	IgnoreZone     bool
	SearchOrder    []string // of configDrive, metadataService and dmi; nil means the default
	ZoneMap        contract.ZoneMap
}

// maxAttachLimit is the most that upstream lets a node report.
const maxAttachLimit = 256

// ReadFiles reads cloud.conf from its files, by read; later files win key by key. Errors name the file and the line.
func ReadFiles(read func(path string) ([]byte, error), paths ...string) (*cloudconf.File, error) {
	all := &cloudconf.File{}
	for _, path := range paths {
		content, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read cloud.conf: %w", err)
		}
		file, err := cloudconf.Parse(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.Merge(file)
	}
	return all, nil
}

// ParseSettings reads the options outside [Global]. What is unknown, sections and keys of [Global] too, comes back as complaints,
// each a sentence that names the nearest known name; it is the caller's to warn or to refuse.
func ParseSettings(f *cloudconf.File) (s Settings, complaints []string, err error) {
	for _, unknown := range f.Unknown(Known()) {
		complaints = append(complaints, unknown.String())
	}
	storage := f.Section(BlockStorage, "")
	for key, field := range map[string]*bool{IgnoreZone: &s.IgnoreZone, RescanOnResize: new(bool), IgnoreMicroversion: new(bool)} {
		if *field, err = storage.Bool(key); err != nil {
			return Settings{}, nil, err
		}
	}
	if text, _ := storage.Get(AttachLimit); text != "" {
		if s.AttachLimit, err = strconv.ParseInt(text, 0, 64); err != nil {
			return Settings{}, nil, fmt.Errorf("[%s] %s: %q is not a whole number", BlockStorage, AttachLimit, text)
		}
		if s.AttachLimit < 0 || s.AttachLimit > maxAttachLimit {
			s.AttachLimit = maxAttachLimit
		}
	}
	if text, _ := storage.Get(AttachReserve); text != "" {
		reserve, err := strconv.ParseInt(text, 0, 64)
		if err != nil || reserve < 0 || reserve > maxAttachLimit {
			return Settings{}, nil, fmt.Errorf("[%s] %s: %q is not a whole number from 0 to %d", BlockStorage, AttachReserve, text, maxAttachLimit)
		}
		s.AttachReserve = &reserve
	}
	foreign, _ := storage.Get(ForeignVolumes)
	for id := range strings.FieldsFuncSeq(foreign, func(r rune) bool { return r == ',' || r == ' ' }) {
		s.ForeignVolumes = append(s.ForeignVolumes, id)
	}
	if s.ZoneMap, err = parseZones(f); err != nil {
		return Settings{}, nil, err
	}
	order, given := f.Section(Metadata, "").Get(SearchOrder)
	if !given {
		return s, complaints, nil
	}
	for _, place := range strings.Split(order, ",") {
		switch place = strings.TrimSpace(place); place {
		case "configDrive", "metadataService", "dmi":
			s.SearchOrder = append(s.SearchOrder, place)
		default:
			complaints = append(complaints, fmt.Sprintf("[%s] %s: %q is none of configDrive, metadataService, dmi", Metadata, SearchOrder, place))
		}
	}
	if len(s.SearchOrder) == 0 {
		return Settings{}, nil, fmt.Errorf("[%s] %s names none of configDrive, metadataService, dmi", Metadata, SearchOrder)
	}
	return s, complaints, nil
}

// restarts are the options that a running driver does not follow: kubelet asks a node for them once, when it registers.
var restarts = []struct {
	key string
	of  func(Settings) any
}{
	{AttachLimit, func(s Settings) any { return s.AttachLimit }},
	{AttachReserve, func(s Settings) any { return s.AttachReserve }},
	{ForeignVolumes, func(s Settings) any { return s.ForeignVolumes }},
	{SearchOrder, func(s Settings) any { return s.SearchOrder }},
}

// NeedsRestart reports whether a changed value takes effect only when the driver starts again; the others do at once.
func (o Option) NeedsRestart() bool {
	for _, r := range restarts {
		if r.key == o.Key {
			return true
		}
	}
	return false
}

// NeedRestart lists the options that differ from those the driver was started with and need a restart.
func (s Settings) NeedRestart(started Settings) []string {
	var keys []string
	for _, r := range restarts {
		if !reflect.DeepEqual(r.of(s), r.of(started)) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// Equal reports whether nothing differs.
func (s Settings) Equal(other Settings) bool { return reflect.DeepEqual(s, other) }

// parseZones reads the [Zone "compute zone"] sections.
func parseZones(f *cloudconf.File) (contract.ZoneMap, error) {
	var zones contract.ZoneMap
	for _, compute := range f.Subsections(Zone) {
		zone, given := f.Section(Zone, compute).Get(VolumeZone)
		switch {
		case compute == "":
			return nil, fmt.Errorf("[%s] names no compute zone; write [%s \"COMPUTE ZONE\"]", Zone, Zone)
		case !given:
			return nil, fmt.Errorf("[%s %q] has no %s", Zone, compute, VolumeZone)
		case zones == nil:
			zones = contract.ZoneMap{}
		}
		zones[compute] = zone
	}
	if err := zones.Check(); err != nil {
		return nil, fmt.Errorf("[%s] sections: %w", Zone, err)
	}
	return zones, nil
}
