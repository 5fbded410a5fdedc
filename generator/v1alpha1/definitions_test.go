package v1alpha1

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written puts every definition back where a schema refers to it.
func written(t *testing.T, root map[string]any, schema any) any {
	t.Helper()
	switch s := schema.(type) {
	case map[string]any:
		if ref, ok := s["$ref"].(string); ok {
			defs := root["$defs"].(map[string]any)
			whole, found := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
			if !found {
				t.Fatalf("%s is not defined", ref)
			}
			whole = maps.Clone(written(t, root, whole).(map[string]any))
			for key, value := range s {
				if key != "$ref" {
					whole[key] = value
				}
			}
			return whole
		}
		result := map[string]any{}
		for key, value := range s {
			if key != "$defs" && key != typeKey {
				result[key] = written(t, root, value)
			}
		}
		return result
	case []any:
		var result []any
		for _, value := range s {
			result = append(result, written(t, root, value))
		}
		return result
	}
	return schema
}

func TestASchemaSaysEverythingOnce(t *testing.T) {
	for _, kind := range Kinds {
		schema, err := Schema(kind)
		if err != nil {
			t.Fatal(err)
		}
		long, err := inlined(kind)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written(t, nil, long), written(t, schema, schema)); diff != "" {
			t.Errorf("%s: the definitions are not what they replace (-want +got):\n%s", kind, diff)
		}
		text, err := JSON(schema)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "u0000") {
			t.Errorf("%s: the schema has the mark of a type", kind)
		}
		if most := 110_000; len(text) > most {
			t.Errorf("%s: want at most %d bytes, got %d", kind, most, len(text))
		}
	}
}
