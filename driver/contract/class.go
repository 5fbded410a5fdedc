package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Parameters of upstream. The type of a StorageClass is a volume type; that of a VolumeSnapshotClass is a SnapshotKind.
const (
	ParameterType        = "type"                               // StorageClass, VolumeSnapshotClass, VolumeAttributesClass
	ParameterZone        = "availability"                       // StorageClass, VolumeSnapshotClass
	ParameterMetadata    = "appendVolumeMetadata"               // StorageClass
	ParameterForce       = "force-create"                       // VolumeSnapshotClass
	ParameterBackupTime  = "backup-max-duration-seconds-per-gb" // VolumeSnapshotClass
	ParameterIncremental = "incremental"                        // VolumeSnapshotClass
)

// Parameters of StorageClasses that upstream does not have. Those for new file systems are in format.go.
const (
	// ParameterHints holds a JSON object of scheduler hints: see Hints.
	ParameterHints = "scheduler-hints"
	// ParameterMetadataPrefix with a metadata key is a parameter whose value is a Template: see parseTemplate.
	ParameterMetadataPrefix = "metadata."
)

// sidecarPrefix is the prefix of the parameters of the CSI sidecars.
const sidecarPrefix = "csi.storage.k8s.io/"

// The kind of file system. external-provisioner reads and removes this parameter; the second is its deprecated name.
const (
	parameterFSType    = sidecarPrefix + "fstype"
	parameterOldFSType = "fstype"
)

// StorageClassKeys lists every parameter of a StorageClass, with those that external-provisioner reads or adds, and without those that
// begin with ParameterMetadataPrefix.
var StorageClassKeys = append(keysOf(StorageClassParameters),
	parameterOldFSType,
	MetadataPVCName, MetadataPVCNamespace, MetadataPVName,
	"csi.storage.k8s.io/provisioner-secret-name", "csi.storage.k8s.io/provisioner-secret-namespace",
	"csi.storage.k8s.io/controller-publish-secret-name", "csi.storage.k8s.io/controller-publish-secret-namespace",
	"csi.storage.k8s.io/controller-expand-secret-name", "csi.storage.k8s.io/controller-expand-secret-namespace",
	"csi.storage.k8s.io/node-stage-secret-name", "csi.storage.k8s.io/node-stage-secret-namespace",
	"csi.storage.k8s.io/node-publish-secret-name", "csi.storage.k8s.io/node-publish-secret-namespace",
	"csi.storage.k8s.io/node-expand-secret-name", "csi.storage.k8s.io/node-expand-secret-namespace",
)

// SnapshotClassKeys lists every parameter of a VolumeSnapshotClass, with those that external-snapshotter reads or adds.
var SnapshotClassKeys = append(keysOf(SnapshotClassParameters),
	MetadataSnapshotName, MetadataSnapshotNamespace, MetadataSnapshotContentName,
	"csi.storage.k8s.io/snapshotter-secret-name", "csi.storage.k8s.io/snapshotter-secret-namespace",
	"csi.storage.k8s.io/snapshotter-list-secret-name", "csi.storage.k8s.io/snapshotter-list-secret-namespace",
	"csi.storage.k8s.io/snapshotter-get-secret-name", "csi.storage.k8s.io/snapshotter-get-secret-namespace",
)

// StorageClass holds the parameters of a StorageClass, with those that external-provisioner adds.
type StorageClass struct {
	// Type is the name or id of a volume type; empty means the cloud's default type.
	Type string
	// Zone is the volume zone; it overrides the topology. Empty means that the topology decides.
	Zone string
	// Metadata holds the keys and values of ParameterMetadata for the Cinder volume.
	Metadata map[string]string
	// Templates are more metadata values, by key.
	Templates map[string]Template
	Hints     Hints
	// Format holds the options of a new file system. It is valid for the kind in the parameters, or for ext4 without one.
	Format Format
	// PVCName, PVCNamespace and PVName are set if external-provisioner has --extra-create-metadata.
	PVCName, PVCNamespace, PVName string
}

// ParseStorageClass reads the parameters of a StorageClass. It returns unknown keys, sorted, also those with the prefix of the sidecars; the
// caller decides whether they are an error. Errors name the parameter and what it should be.
func ParseStorageClass(parameters map[string]string) (StorageClass, []string, error) {
	class := StorageClass{
		Type:         parameters[ParameterType],
		Zone:         parameters[ParameterZone],
		PVCName:      parameters[MetadataPVCName],
		PVCNamespace: parameters[MetadataPVCNamespace],
		PVName:       parameters[MetadataPVName],
	}
	for _, key := range []string{ParameterType, ParameterZone} {
		if err := CheckText(key, parameters[key]); err != nil {
			return StorageClass{}, nil, fmt.Errorf("parameter %w", err)
		}
	}
	if text := parameters[ParameterMetadata]; text != "" {
		metadata, err := parseMetadata(text)
		if err != nil {
			return StorageClass{}, nil, fmt.Errorf("parameter %s: %w", ParameterMetadata, err)
		}
		class.Metadata = metadata
	}
	if text := parameters[ParameterHints]; text != "" {
		hints, err := parseHints(text)
		if err != nil {
			return StorageClass{}, nil, fmt.Errorf("parameter %s: %w", ParameterHints, err)
		}
		class.Hints = hints
	}
	if err := class.parseTemplates(parameters); err != nil {
		return StorageClass{}, nil, err
	}
	format, err := parseFormat(parameters, "")
	if err == nil {
		err = format.Check(FileSystemOf(parameters))
	}
	if err != nil {
		return StorageClass{}, nil, fmt.Errorf("parameter %w", err)
	}
	class.Format = format
	return class, unknown(parameters, StorageClassKeys, ParameterMetadataPrefix), nil
}

// parseTemplates reads the parameters that begin with ParameterMetadataPrefix.
func (c *StorageClass) parseTemplates(parameters map[string]string) error {
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		key, is := strings.CutPrefix(parameter, ParameterMetadataPrefix)
		if !is {
			continue
		}
		t, err := parseTemplate(parameters[parameter])
		if err == nil {
			err = checkMetadataKey(key)
		}
		if _, twice := c.Metadata[key]; twice && err == nil {
			err = fmt.Errorf("%s sets the same key", ParameterMetadata)
		}
		if err != nil {
			return fmt.Errorf("parameter %.300s: %w", parameter, err)
		}
		if c.Templates == nil {
			c.Templates = map[string]Template{}
		}
		c.Templates[key] = t
	}
	return nil
}

// VolumeMetadata is all metadata that a class adds to a volume, for the claim in its parameters. A parameter that becomes metadata needs no
// code outside this package. Package controller passes this map on, and package provision adds the metadata of the driver.
func (c StorageClass) VolumeMetadata() (map[string]string, error) {
	metadata := map[string]string{}
	maps.Copy(metadata, c.Metadata)
	values := map[string]string{PlaceholderPVCName: c.PVCName, PlaceholderPVCNamespace: c.PVCNamespace, PlaceholderPVName: c.PVName}
	for _, key := range slices.Sorted(maps.Keys(c.Templates)) {
		value, err := c.Templates[key].Fill(values)
		if err != nil {
			return nil, fmt.Errorf("parameter %s%s: %w", ParameterMetadataPrefix, key, err)
		}
		metadata[key] = value
	}
	for key, value := range map[string]string{MetadataPVCName: c.PVCName, MetadataPVCNamespace: c.PVCNamespace, MetadataPVName: c.PVName} {
		if value == "" {
			continue
		}
		if err := CheckText(key, value); err != nil {
			return nil, fmt.Errorf("key %w", err)
		}
		metadata[key] = value
	}
	return metadata, nil
}

// maxMetadata is the longest key or value of volume metadata in Cinder, in characters.
const maxMetadata = 255

func parseMetadata(text string) (map[string]string, error) {
	var metadata map[string]string
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		return nil, fmt.Errorf("want a JSON object of strings such as {\"team\": \"storage\"}: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if err := CheckMetadata(key, metadata[key]); err != nil {
			return nil, err
		}
	}
	return metadata, nil
}

// checkMetadata reports a key or value that a class must not write to the metadata of a volume.
func CheckMetadata(key, value string) error {
	if err := checkMetadataKey(key); err != nil {
		return err
	}
	if err := CheckText(key, value); err != nil {
		return fmt.Errorf("key %w", err)
	}
	return nil
}

// CheckText reports the value of a field that Cinder does not accept, or that has control characters.
func CheckText(field, value string) error {
	if utf8.RuneCountInString(value) > maxMetadata {
		return fmt.Errorf("%.40q: the value is longer than the %d characters that Cinder accepts", field, maxMetadata)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return fmt.Errorf("%.40q: the value %.40q contains a control character, which could change logs and terminals of the cloud", field, value)
	}
	return nil
}

// maxAllMetadata limits the metadata of one object, in bytes of an answer of Cinder, which writes letters that are not ASCII as \u1234. Cinder has no
// limit of its own. Package cloud refuses an object that is eight times as large, and then every list of the project that shows it.
const maxAllMetadata = 32 << 10

// maxEntries limits the number of entries of one object: Cinder reads a row of its database for each, in every list.
const maxEntries = 256

// CheckMetadataSize reports metadata that is too large together for one object.
func CheckMetadataSize(metadata map[string]string) error {
	if len(metadata) > maxEntries {
		return fmt.Errorf("all metadata together has %d entries, and may have %d; remove some", len(metadata), maxEntries)
	}
	size := 0
	for key, value := range metadata {
		size += len(strconv.QuoteToASCII(key)) + len(strconv.QuoteToASCII(value))
	}
	if size > maxAllMetadata {
		return fmt.Errorf("all metadata together has %d bytes as Cinder writes it (ä is \\u00e4), and may have %d; remove some", size, maxAllMetadata)
	}
	return nil
}

// metadataKey has the characters of a metadata key in Cinder (its API's JSON schema, "extra_specs" of parameter_types.py). maxMetadata
// limits the length: {1,255} in the expression would compile to 240 KB at the start of every program that knows the contract.
var metadataKey = regexp.MustCompile(`^[a-zA-Z0-9_:. /-]+$`)

func checkMetadataKey(key string) error {
	if len(key) > maxMetadata || !metadataKey.MatchString(key) {
		return fmt.Errorf("key %.40q: Cinder accepts keys of 1 to %d letters, digits, blanks and the characters -_:./", key, maxMetadata)
	}
	// A database of Cinder may take capitals and blanks at the end for the same key.
	own := func(k string) bool { return strings.EqualFold(k, strings.TrimSpace(key)) }
	if slices.ContainsFunc(writtenMetadata, own) {
		return fmt.Errorf("only the driver itself writes the key %q", key)
	}
	return nil
}

// SnapshotKind is the Cinder object for a VolumeSnapshot.
type SnapshotKind string

// The kinds of snapshot.
const (
	KindSnapshot SnapshotKind = "snapshot"
	KindBackup   SnapshotKind = "backup"
)

// SnapshotClass holds the parameters of a VolumeSnapshotClass.
type SnapshotClass struct {
	Kind SnapshotKind
	// Force allows a snapshot or backup of an attached volume.
	Force bool
	// Zone is the zone of the cinder-backup service for a backup; empty means that Cinder chooses.
	Zone string
	// BackupTime is the time for each GiB of a backup after which the driver returns an error. The backup continues in Cinder.
	BackupTime time.Duration
	// Incremental makes an incremental backup, if the volume has a backup that can be its parent.
	Incremental bool
	// Metadata is added to the metadata of the snapshot or backup.
	Metadata map[string]string
}

// defaultBackupTime is upstream's: 20 seconds per GiB.
const defaultBackupTime = 20 * time.Second

// ParseSnapshotClass reads the parameters of a VolumeSnapshotClass, like ParseStorageClass.
func ParseSnapshotClass(parameters map[string]string) (SnapshotClass, []string, error) {
	class := SnapshotClass{Kind: KindSnapshot, Zone: parameters[ParameterZone], BackupTime: defaultBackupTime}
	switch kind := SnapshotKind(parameters[ParameterType]); kind {
	case "":
	case KindSnapshot, KindBackup:
		class.Kind = kind
	default:
		return SnapshotClass{}, nil, fmt.Errorf("parameter %s: %q is neither %s nor %s", ParameterType, kind, KindSnapshot, KindBackup)
	}
	err := CheckText(ParameterZone, class.Zone) // Cinder keeps it as it is, also if there is no such zone
	if err != nil {
		return SnapshotClass{}, nil, fmt.Errorf("parameter %w", err)
	}
	if class.Force, err = parseBool(parameters, ParameterForce); err != nil {
		return SnapshotClass{}, nil, err
	}
	if class.Incremental, err = parseBool(parameters, ParameterIncremental); err != nil {
		return SnapshotClass{}, nil, err
	}
	if text := parameters[ParameterBackupTime]; text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds <= 0 {
			return SnapshotClass{}, nil, fmt.Errorf("parameter %s: %q is not a whole number of seconds above 0", ParameterBackupTime, text)
		}
		class.BackupTime = time.Duration(seconds) * time.Second
	}
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		key, is := strings.CutPrefix(parameter, ParameterMetadataPrefix)
		if !is {
			continue
		}
		if err := CheckMetadata(key, parameters[parameter]); err != nil {
			return SnapshotClass{}, nil, fmt.Errorf("parameter %.300s: %w", parameter, err)
		}
		if class.Metadata == nil {
			class.Metadata = map[string]string{}
		}
		class.Metadata[key] = parameters[parameter]
	}
	return class, unknown(parameters, SnapshotClassKeys, ParameterMetadataPrefix), nil
}

func parseBool(parameters map[string]string, key string) (bool, error) {
	text := parameters[key]
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("parameter %s: %q is neither true nor false", key, text)
	}
	return value, nil
}

// unknown lists the keys that are neither known nor begin with one of the prefixes.
func unknown(parameters map[string]string, known []string, prefixes ...string) []string {
	var keys []string
	for key := range parameters {
		begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		if !slices.Contains(known, key) && !slices.ContainsFunc(prefixes, begins) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// FromSidecar reports whether a parameter belongs to the CSI sidecars. They check such keys themselves, and may know more of them than this
// driver.
func FromSidecar(key string) bool { return strings.HasPrefix(key, sidecarPrefix) }
