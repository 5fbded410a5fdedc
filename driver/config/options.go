package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// MetadataSources are the sources that SearchOrder may name.
var MetadataSources = []string{"configDrive", "metadataService", "dmi"}

// Option describes one key of cloud.conf.
type Option struct {
	Section string
	Key     string // "*" means every key of a section that only other programs read
	Kind    string // bool, integer, list, text
	Default string
	Meaning string
}

// The sections of cloud.conf that the driver reads.
const (
	Global       = "Global"
	BlockStorage = "BlockStorage"
	Metadata     = "Metadata"
	Zone         = "Zone" // the subsections are compute zones
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

// Options lists every known key of cloud.conf, including [Global] and the keys of the cloud controller manager: both programs often share
// one file.
var Options = []Option{
	{BlockStorage, AttachLimit, "integer", "", "maximum number of volumes of a node; absent: the node calculates it; below 0 or above 256: 256"},
	{BlockStorage, AttachReserve, "integer", "1", "slots for disks that a node leaves free when it calculates its limit, for example for another network card. Added"},
	{BlockStorage, ForeignVolumes, "list", "", "ids of volumes that other programs attached to nodes; the limit does not count them. The node's own system disk needs no entry. Added"},
	{BlockStorage, RescanOnResize, "bool", "false", "read the size of a disk again before its file system grows; this driver always does"},
	{BlockStorage, IgnoreZone, "bool", "false", "report the requested zones as the topology of a new volume, not the zone of the volume"},
	{BlockStorage, IgnoreMicroversion, "bool", "false", "no effect"},
	{BlockStorage, "bs-version", "text", "", "no effect"},
	{BlockStorage, "trust-device-path", "bool", "false", "no effect"},
	{Metadata, SearchOrder, "list", "configDrive,metadataService,dmi", "where a node reads the id and zone of its server, in this order. dmi is the UUID of the hardware, without a zone"},
	{Metadata, RequestTimeout, "text", "", "no effect; for the cloud controller manager"},
	{Zone, VolumeZone, "text", "", "in a section [Zone \"COMPUTE ZONE\"]: the volume zone for servers of that compute zone; absent: the volume zone with the same name. Added; upstream's plugin ignores such sections"},
	{"Networking", "*", "", "", "for the cloud controller manager"},
	{"LoadBalancer", "*", "", "", "for the cloud controller manager"},
	{"LoadBalancerClass", "*", "", "", "for the cloud controller manager"},
	{"Route", "*", "", "", "for the cloud controller manager"},
	{"Router", "*", "", "", "for the cloud controller manager"},
	{Global, "auth-url", "text", "", "URL of Keystone"},
	{Global, "user-id", "text", "", "id of the user"},
	{Global, "username", "text", "", "name of the user"},
	{Global, "password", "text", "", "secret"},
	{Global, "tenant-id", "text", "", "id of the project. A login with an application credential or clouds.yaml must be for it"},
	{Global, "tenant-name", "text", "", "name of the project"},
	{Global, "tenant-domain-id", "text", "", "id of the domain of the project"},
	{Global, "tenant-domain-name", "text", "", "name of the domain of the project"},
	{Global, "user-domain-id", "text", "", "id of the domain of the user"},
	{Global, "user-domain-name", "text", "", "name of the domain of the user"},
	{Global, "domain-id", "text", "", "id of the domain of user and project"},
	{Global, "domain-name", "text", "", "name of the domain of user and project"},
	{Global, "application-credential-id", "text", "", "id of the application credential"},
	{Global, "application-credential-name", "text", "", "name of the application credential"},
	{Global, "application-credential-secret", "text", "", "secret"},
	{Global, "trust-id", "text", "", "id of the trust"},
	{Global, "trustee-id", "text", "", "id of the user of the trust"},
	{Global, "trustee-password", "text", "", "secret"},
	{Global, "token", "text", "", "secret"},
	{Global, "region", "text", "", "region of the endpoints"},
	{Global, "os-endpoint-type", "text", "public", "public, internal or admin"},
	{Global, "ca-file", "text", "", "PEM file of the certificate authorities to trust"},
	{Global, "tls-insecure", "bool", "false", "only the word true disables the verification of certificates"},
	{Global, "cert-file", "text", "", "file of the client certificate"},
	{Global, "key-file", "text", "", "file of the key of the client certificate"},
	{Global, "use-clouds", "bool", "false", "read what is absent here from clouds.yaml"},
	{Global, "clouds-file", "text", "", "path of clouds.yaml"},
	{Global, "cloud", "text", "", "entry of clouds.yaml"},
}

// known lists the names of all options; package cloudconf reports the others as unknown.
func known() []cloudconf.Name {
	names := make([]cloudconf.Name, len(Options))
	for i, o := range Options {
		names[i] = cloudconf.Name{Section: o.Section, Key: o.Key}
	}
	return names
}

// Settings holds the options of cloud.conf outside [Global].
type Settings struct {
	AttachLimit    int64    // volumes per node; 0 means that the node calculates it
	AttachReserve  *int64   // slots that the node leaves free then; nil means the default
	ForeignVolumes []string // ids of volumes that other programs attached
	IgnoreZone     bool
	SearchOrder    []string // some of configDrive, metadataService, dmi; nil means the default
	ZoneMap        contract.ZoneMap
}

// maxAttachLimit is the highest limit that upstream reports for a node.
const maxAttachLimit = 256

// ReadFiles reads the files of cloud.conf by the function read. Keys of a later file replace those of an earlier one. Errors name the file and
// the line.
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

// ParseSettings reads the options outside [Global]. Complaints are sentences about unknown content, also in [Global], with the nearest known
// name. The caller logs or refuses them.
func ParseSettings(f *cloudconf.File) (s Settings, complaints []string, err error) {
	for _, unknown := range f.Unknown(known()) {
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
	for _, source := range strings.Split(order, ",") {
		if source = strings.TrimSpace(source); slices.Contains(MetadataSources, source) {
			s.SearchOrder = append(s.SearchOrder, source)
		} else {
			complaints = append(complaints, fmt.Sprintf("[%s] %s: %q is none of configDrive, metadataService, dmi", Metadata, SearchOrder, source))
		}
	}
	if len(s.SearchOrder) == 0 {
		return Settings{}, nil, fmt.Errorf("[%s] %s names none of configDrive, metadataService, dmi", Metadata, SearchOrder)
	}
	return s, complaints, nil
}

type restart struct {
	key string
	of  func(Settings) any
}

// restarts are the options that need a restart: kubelet asks a node for them only when it registers.
var restarts = []restart{
	{AttachLimit, func(s Settings) any { return s.AttachLimit }},
	{AttachReserve, func(s Settings) any { return s.AttachReserve }},
	{ForeignVolumes, func(s Settings) any { return s.ForeignVolumes }},
	{SearchOrder, func(s Settings) any { return s.SearchOrder }},
}

// NeedsRestart reports whether a new value takes effect only after a restart. Other options take effect at once.
func (o Option) NeedsRestart() bool {
	return slices.ContainsFunc(restarts, func(r restart) bool { return r.key == o.Key })
}

// NeedRestart lists the options that need a restart and differ from those at the start.
func (s Settings) NeedRestart(started Settings) []string {
	var keys []string
	for _, r := range restarts {
		if !reflect.DeepEqual(r.of(s), r.of(started)) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// Equal reports whether all options are the same.
func (s Settings) Equal(other Settings) bool { return reflect.DeepEqual(s, other) }

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
