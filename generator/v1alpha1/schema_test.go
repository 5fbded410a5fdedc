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
		names, known := keys(typ), 0
		for _, property := range properties {
			if property.(map[string]any)["not"] == nil { // else no value is valid
				known++
			}
		}
		if known != len(names) {
			t.Errorf("%s: the schema has %d keys, the type %d", path, known, len(names))
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

func TestAFormerKeyIsRefusedWithItsName(t *testing.T) {
	schema, err := inlined(KindDistribution)
	if err != nil {
		t.Fatal(err)
	}
	spec := schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
	if former["Spec.planes"] != "roles" {
		t.Errorf("want what spec.planes is called now, got %v", former)
	}
	for old, now := range former {
		key := strings.TrimPrefix(old, "Spec.")
		if s, _ := spec[key].(map[string]any); s["not"] == nil || !strings.Contains(s["description"].(string), now) {
			t.Errorf("%s: want a schema that nothing meets and that names %s, got %v", old, now, s)
		}
		if _, renamed := spec[now]; !renamed {
			t.Errorf("%s: there is no %s", old, now)
		}
		for _, document := range []string{"kind: Distribution\nspec: {%s: {}}\n", "kind: Plan\nconfig: {%s: {}}\n", "kind: Plan\ngiven: {spec: {%s: {}}}\n"} {
			text := fmt.Appendf(nil, "apiVersion: "+APIVersion+"\n"+document, key)
			_, config := DecodeDistribution("c.yaml", text)
			_, plan := DecodePlan("c.yaml", text)
			if got := fmt.Sprint(config, plan); !strings.Contains(got, key+"; it is now called "+now) {
				t.Errorf("%s: want its name in the message, got %s", text, got)
			}
		}
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
