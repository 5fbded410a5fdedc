package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestTheSchemaKnowsExactlyTheKeysThatTheDecoderTakes walks schema and types together; each key of one must be the other's.
func TestTheSchemaKnowsExactlyTheKeysThatTheDecoderTakes(t *testing.T) {
	for kind, document := range map[string]reflect.Type{
		KindDistribution: reflect.TypeFor[Distribution](), KindInventory: reflect.TypeFor[Inventory](), KindPlan: reflect.TypeFor[Plan](),
	} {
		schema, err := inlined(kind)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, kind, schema, document)
	}
}

func agree(t *testing.T, path string, schema map[string]any, typ reflect.Type) {
	t.Helper()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Struct:
		properties := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false {
			t.Errorf("%s: want unknown keys to be errors", path)
		}
		names := keys(typ)
		if len(properties) != len(names) {
			t.Errorf("%s: the schema has %d keys, the type %d", path, len(properties), len(names))
		}
		for _, name := range names {
			f, ok := field(typ, name)
			if !ok {
				t.Fatalf("%s.%s: no such field", path, name)
			}
			if sub, ok := properties[name].(map[string]any); !ok {
				t.Errorf("%s.%s is not in the schema", path, name)
			} else if sub["const"] == nil {
				agree(t, path+"."+name, sub, f.Type)
			}
		}
	case reflect.Map:
		agree(t, path+".*", schema["additionalProperties"].(map[string]any), typ.Elem())
	case reflect.Slice:
		agree(t, path+"[]", schema["items"].(map[string]any), typ.Elem())
	}
}

func TestEveryEnumBelongsToAKey(t *testing.T) {
	used := map[string]bool{}
	for _, kind := range Kinds {
		schema, err := inlined(kind)
		if err != nil {
			t.Fatal(err)
		}
		collect(schema, used)
	}
	for key, values := range enums {
		if !used[fmt.Sprint(values)] {
			t.Errorf("%s: no key of any kind has this enum", key)
		}
	}
}

func collect(schema any, used map[string]bool) {
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			if key == "enum" {
				used[fmt.Sprint(value)] = true
			}
			collect(value, used)
		}
	case []any:
		for _, v := range s {
			collect(v, used)
		}
	}
}

func TestAnUnknownKindHasNoSchema(t *testing.T) {
	if _, err := Schema("distribution"); err == nil || !strings.Contains(err.Error(), KindDistribution) {
		t.Errorf("want an error that names the kinds, got %v", err)
	}
	if !slices.IsSorted(Kinds) {
		t.Errorf("want the kinds sorted, got %v", Kinds)
	}
}
