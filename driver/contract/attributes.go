package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParameterPolicy of a VolumeAttributesClass says whether a new type may move the volume to another backend: PolicyNever, the default, or
// PolicyOnDemand. Such a class may also have ParameterType, and ParameterMetadataPrefix with literal values.
const ParameterPolicy = "policy"

// The values of ParameterPolicy are those of Cinder's migration_policy (Cinder API reference, "Retype a volume").
const (
	PolicyNever    = "never"
	PolicyOnDemand = "on-demand"
)

// AttributesClass holds the parameters of a VolumeAttributesClass. An absent parameter changes nothing (CSI specification,
// ControllerModifyVolume).
type AttributesClass struct {
	// Type is the name or id of a volume type.
	Type string
	// Migrate allows Cinder to copy the volume to another backend for that type.
	Migrate bool
	// Metadata is added to the metadata of the Cinder volume. No value is empty.
	Metadata map[string]string
	// Remove holds the metadata keys that the Cinder volume may not have, sorted: those with an empty value in the class.
	Remove []string
}

// ParseAttributesClass reads the parameters of a VolumeAttributesClass. An unknown key is an error with the nearest known key: otherwise
// Kubernetes would show a change that did not happen.
func ParseAttributesClass(parameters map[string]string) (AttributesClass, error) {
	var class AttributesClass
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[key]
		name, isMetadata := strings.CutPrefix(key, ParameterMetadataPrefix)
		switch {
		case key == ParameterType && value == "":
			return AttributesClass{}, fmt.Errorf("parameter %s is empty; name a volume type, or remove the parameter", ParameterType)
		case key == ParameterType:
			if err := CheckText(key, value); err != nil {
				return AttributesClass{}, fmt.Errorf("parameter %w", err)
			}
			class.Type = value
		case key == ParameterPolicy && value != PolicyNever && value != PolicyOnDemand:
			return AttributesClass{}, fmt.Errorf("parameter %s: %q is neither %s nor %s", ParameterPolicy, value, PolicyNever, PolicyOnDemand)
		case key == ParameterPolicy:
			class.Migrate = value == PolicyOnDemand
		case isMetadata:
			if err := CheckMetadata(name, value); err != nil {
				return AttributesClass{}, fmt.Errorf("parameter %.300s: %w", key, err)
			}
			if value == "" {
				if err := checkRemovable(name); err != nil {
					return AttributesClass{}, fmt.Errorf("parameter %.300s: %w", key, err)
				}
				class.Remove = append(class.Remove, name)
				continue
			}
			if class.Metadata == nil {
				class.Metadata = map[string]string{}
			}
			class.Metadata[name] = value
		default:
			return AttributesClass{}, fmt.Errorf("parameter %q is not known%s; a VolumeAttributesClass may have %s, %s and %s<key>",
				key, meant(key), ParameterType, ParameterPolicy, ParameterMetadataPrefix)
		}
	}
	if _, given := parameters[ParameterPolicy]; given && class.Type == "" {
		return AttributesClass{}, fmt.Errorf("parameter %s needs a new volume type, but there is no parameter %s", ParameterPolicy, ParameterType)
	}
	return class, nil
}

// checkRemovable reports a metadata key that the driver cannot name in the path of Cinder's request to remove one key. Web servers decode or
// refuse an escaped slash. Cinder's routes take .json and .xml at the end of a path for a format, so it would remove another key ("a" for
// "a.json"). The request that replaces all metadata could name such a key, but it would also undo the changes of others since the last read.
func checkRemovable(key string) error {
	if strings.Contains(key, "/") || strings.HasSuffix(key, ".json") || strings.HasSuffix(key, ".xml") || key == "." || key == ".." {
		return fmt.Errorf("key %.40q: an empty value removes the key, but Cinder cannot remove a key that contains a slash, ends with .json or .xml, or is . or ..; "+
			"remove it with `openstack volume unset --property`, or set another value", key)
	}
	return nil
}

// meant suggests a known key for an unknown one, as the end of a sentence. The known key is the nearest, or a part of the unknown key, as
// in migration-policy.
func meant(key string) string {
	head, tail, dotted := strings.Cut(key, ".")
	near, ok := Nearest(key, []string{ParameterType, ParameterPolicy})
	if dotted {
		if _, ok := Nearest(head, []string{strings.TrimSuffix(ParameterMetadataPrefix, ".")}); ok {
			return "; did you mean " + ParameterMetadataPrefix + tail + "?"
		}
	}
	for _, known := range []string{ParameterType, ParameterPolicy} {
		if !ok && strings.Contains(plainKey(key), known) {
			near, ok = known, true
		}
	}
	if !ok {
		return ""
	}
	return "; did you mean " + near + "?"
}
