package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParameterPolicy of a VolumeAttributesClass says whether a change of the type may move the volume to another backend: PolicyNever,
// the default, or PolicyOnDemand. Such a class may also have ParameterType, and ParameterMetadataPrefix with values as they stand.
const ParameterPolicy = "policy"

// What ParameterPolicy may be: Cinder's migration_policy (Cinder API reference, "Retype a volume").
const (
	PolicyNever    = "never"
	PolicyOnDemand = "on-demand"
)

// AttributesClass is what the parameters of a VolumeAttributesClass ask of a volume. What is absent is left as it is (CSI
// specification, ControllerModifyVolume).
type AttributesClass struct {
	// Type is the name or id of a volume type.
	Type string
	// Migrate allows the volume to be copied to another backend for that type.
	Migrate bool
	// Metadata is what the Cinder volume's metadata shall hold besides what it has.
	Metadata map[string]string
}

// ParseAttributesClass reads the parameters of a VolumeAttributesClass. Every key that it does not know is an error, which names
// the nearest known one: a volume must not be taken for changed when nothing was.
func ParseAttributesClass(parameters map[string]string) (AttributesClass, error) {
	var class AttributesClass
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[key]
		name, isMetadata := strings.CutPrefix(key, ParameterMetadataPrefix)
		switch {
		case key == ParameterType && value == "":
			return AttributesClass{}, fmt.Errorf("parameter %s is empty; name a volume type, or leave it out", ParameterType)
		case key == ParameterType:
			class.Type = value
		case key == ParameterPolicy && value != PolicyNever && value != PolicyOnDemand:
			return AttributesClass{}, fmt.Errorf("parameter %s: %q is neither %s nor %s", ParameterPolicy, value, PolicyNever, PolicyOnDemand)
		case key == ParameterPolicy:
			class.Migrate = value == PolicyOnDemand
		case isMetadata:
			if err := checkMetadata(name, value); err != nil {
				return AttributesClass{}, fmt.Errorf("parameter %.300s: %w", key, err)
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
		return AttributesClass{}, fmt.Errorf("parameter %s is about a change of the type, and there is no parameter %s", ParameterPolicy, ParameterType)
	}
	return class, nil
}

// meant is what an unknown key was most likely meant to be, as the end of a clause: a whole key, or one that its own text holds,
// as migration-policy does.
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
