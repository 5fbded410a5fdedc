package v1alpha1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Kinds lists the kinds that have a schema.
var Kinds = []string{KindChanges, KindDistribution, KindInventory, KindPlan}

// Schema is the JSON schema (draft 2020-12) of one kind of document, as strict as the decoder. What several keys hold is defined once.
func Schema(kind string) (map[string]any, error) {
	s, err := inlined(kind)
	if err != nil {
		return nil, err
	}
	return defineOnce(s), nil
}

// inlined is the schema without definitions. Each object names its type under typeKey.
func inlined(kind string) (map[string]any, error) {
	var t reflect.Type
	var required []string
	switch kind {
	case KindDistribution:
		t = reflect.TypeFor[Distribution]()
	case KindInventory:
		t, required = reflect.TypeFor[Inventory](), []string{"apiVersion", "kind"}
	case KindPlan:
		t, required = reflect.TypeFor[Plan](), []string{"apiVersion", "kind"}
	case KindChanges:
		t, required = reflect.TypeFor[Changes](), []string{"apiVersion", "kind"}
	default:
		return nil, fmt.Errorf("there is no kind %q; want one of %v", kind, Kinds)
	}
	s := schemaOf(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = "urn:generator.cinder-csi.io:v1alpha1:" + kind
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
	if kind == KindDistribution {
		textDefaults(properties["spec"].(map[string]any), reflect.ValueOf(Distribution{}.WithDefaults()))
	}
	return s, nil
}

func schemaOf(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[IntOrAuto]():
		return numberOr(1, "^(auto|[1-9][0-9]*)$")
	case reflect.TypeFor[IntOrPercent]():
		return numberOr(0, "^[0-9]+%?$")
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

// defaultOf reads a default from the words that describe it: one of an enum, a number, a truth value or a list. Other texts are words for people.
func defaultOf(t reflect.Type, words string, enum any) (any, bool) {
	values, _ := enum.([]any)
	for _, v := range values {
		if fmt.Sprint(v) == words {
			return v, true
		}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Slice:
		value := reflect.New(t)
		err := json.Unmarshal([]byte(words), value.Interface())
		return value.Elem().Interface(), err == nil
	}
	return nil, false
}

// textDefaults adds the defaults that are texts. They come from the value, because words for people cannot be distinguished from them.
func textDefaults(schema map[string]any, value reflect.Value) {
	properties, _ := schema["properties"].(map[string]any)
	for _, f := range reflect.VisibleFields(value.Type()) {
		s, _ := properties[jsonKey(f)].(map[string]any)
		switch v := value.FieldByIndex(f.Index); v.Kind() {
		case reflect.Struct:
			textDefaults(s, v)
		case reflect.String:
			if v.String() != "" {
				s["default"] = v.String()
			}
		}
	}
}

// numberOr is a whole number, or a text that matches.
func numberOr(minimum int, pattern string) map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"type": "integer", "minimum": minimum}, map[string]any{"type": "string", "pattern": pattern}}}
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
		if value, ok := defaultOf(f.Type, abouts[owner(t, f)+"."+key].Default, s["enum"]); ok {
			s["default"] = value
		}
		if text := abouts[owner(t, f)+"."+key].description(); text != "" {
			s["description"] = text
		}
		properties[key] = s
	}
	name, _, _ := strings.Cut(t.Name(), "[") // without type parameters
	for old, now := range former {
		if key, ok := strings.CutPrefix(old, name+"."); ok { // an editor shows the description, and nothing is valid there
			properties[key] = map[string]any{"not": map[string]any{}, "deprecated": true, "description": "It is now called " + now + "."}
		}
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties, typeKey: name}
}

// owner is the name of the type that declares a field: the embedded one where it is promoted; without its type parameters.
func owner(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}
