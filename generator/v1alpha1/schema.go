package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
)

// Kinds lists the kinds that have a schema.
var Kinds = []string{KindDistribution, KindInventory, KindPlan}

// enums are the values that a key may have, by type and JSON key.
var enums = map[string][]any{
	"OpenShift.coexistence":       {SideBySide, Adopt},
	"Topology.mode":               {Auto, Enabled, Disabled},
	"ClassOverride.reclaimPolicy": {"Delete", "Retain"},
	"Monitoring.kind":             {None, "PodMonitor", "ServiceMonitor"},
	"Toleration.operator":         {"Equal", "Exists"},
	"Toleration.effect":           {"NoSchedule", "PreferNoSchedule", "NoExecute"},
	"Plan.target":                 {Vanilla, Standalone, HostedControlPlane},
	"Plan.format":                 {Kustomize, Helm},
	"Decision.source":             {"config", "inferred", "default"},
	"Fact.state":                  {Known, Denied, Unsupported, Failed},
}

// Schema is the JSON schema (draft 2020-12) of one kind of document, as strict as the decoder.
func Schema(kind string) (map[string]any, error) {
	var t reflect.Type
	var required []string
	switch kind {
	case KindDistribution:
		t = reflect.TypeFor[Distribution]()
	case KindInventory:
		t, required = reflect.TypeFor[Inventory](), []string{"apiVersion", "kind"}
	case KindPlan:
		t, required = reflect.TypeFor[Plan](), []string{"apiVersion", "kind"}
	default:
		return nil, fmt.Errorf("there is no kind %q; want one of %v", kind, Kinds)
	}
	s := schemaOf(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = "https://generator.cinder-csi.io/v1alpha1/" + kind
	s["title"] = kind
	properties := s["properties"].(map[string]any)
	for key, value := range map[string]string{"apiVersion": APIVersion, "kind": kind} {
		fixed := map[string]any{"const": value}
		if text := abouts[t.Name()+"."+key].description(); text != "" {
			fixed["description"] = text
		}
		properties[key] = fixed
	}
	if required != nil {
		s["required"] = required
	}
	return s, nil
}

func schemaOf(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[IntOrAuto]() {
		return map[string]any{"oneOf": []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"type": "string", "pattern": "^(auto|[1-9][0-9]*)$"}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return objectSchema(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Interface:
		return map[string]any{}
	}
	panic("v1alpha1: no schema for values of type " + t.String())
}

func objectSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		key := jsonKey(f)
		if key == "" {
			continue
		}
		s := schemaOf(f.Type)
		if values, ok := enums[owner(t, f)+"."+key]; ok {
			s["enum"] = slices.Clone(values)
		}
		if text := abouts[owner(t, f)+"."+key].description(); text != "" {
			s["description"] = text
		}
		properties[key] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// owner is the name of the type that declares a field: the embedded one where it is promoted; without its type parameters.
func owner(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	name := t.Name()
	for i, r := range name {
		if r == '[' {
			return name[:i]
		}
	}
	return name
}
