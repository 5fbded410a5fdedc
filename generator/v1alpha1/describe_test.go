package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryKeyOfADistributionIsDescribed(t *testing.T) {
	described := map[string]bool{}
	describedBelow(t, "", reflect.TypeFor[Distribution](), described)
	for key := range abouts {
		if !described[key] {
			t.Errorf("%s is described and is no key of a Distribution", key)
		}
	}
	schema, err := inlined(KindDistribution)
	if err != nil {
		t.Fatal(err)
	}
	withDescriptions(t, KindDistribution, schema)
}

// describedBelow holds each key to: a sentence of meaning; a default unless it only holds others; and a full stop where the schema
// puts one.
func describedBelow(t *testing.T, path string, typ reflect.Type, described map[string]bool) {
	t.Helper()
	for _, f := range reflect.VisibleFields(typ) {
		name := jsonKey(f)
		if name == "" {
			continue
		}
		key := owner(typ, f) + "." + name
		described[key] = true
		a := abouts[key]
		if !strings.HasSuffix(a.Meaning, ".") || strings.HasSuffix(a.Default, ".") || strings.HasSuffix(a.Refused, ".") {
			t.Errorf("%s.%s (%s): want a sentence of meaning, default and refusals without a full stop, got %+v", path, name, key, a)
		}
		inner, _ := element(f.Type)
		if holder := inner == f.Type && inner.Kind() == reflect.Struct; holder != (a.Default == "") {
			t.Errorf("%s.%s (%s): want a default unless it only holds other keys, got %q", path, name, key, a.Default)
		}
		if inner.Kind() == reflect.Struct {
			describedBelow(t, path+"."+name, inner, described)
		}
	}
}

func withDescriptions(t *testing.T, path string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range properties {
		s := value.(map[string]any)
		if s["description"] == nil {
			t.Errorf("%s.%s: the schema does not describe it", path, name)
		}
		withDescriptions(t, path+"."+name, s)
		for _, inner := range []string{"items", "additionalProperties"} {
			if element, ok := s[inner].(map[string]any); ok {
				withDescriptions(t, path+"."+name+"."+inner, element)
			}
		}
	}
}

// TestTheSchemaHasTheDefaultsThatTheGeneratorFillsIn compares each filled default with the schema's, and with the words that people read.
func TestTheSchemaHasTheDefaultsThatTheGeneratorFillsIn(t *testing.T) {
	schema, err := inlined(KindDistribution)
	if err != nil {
		t.Fatal(err)
	}
	spec := schema["properties"].(map[string]any)["spec"].(map[string]any)
	if n := compareDefaults(t, "spec", spec, reflect.ValueOf(Distribution{}.WithDefaults())); n < 20 {
		t.Errorf("want at least 20 keys with a default, got %d", n)
	}
}

func compareDefaults(t *testing.T, path string, schema map[string]any, value reflect.Value) (compared int) {
	t.Helper()
	for _, f := range reflect.VisibleFields(value.Type()) {
		v, at := value.FieldByIndex(f.Index), path+"."+jsonKey(f)
		property, _ := schema["properties"].(map[string]any)[jsonKey(f)].(map[string]any)
		if v.Kind() == reflect.Struct {
			compared += compareDefaults(t, at, property, v)
			continue
		}
		if v.IsZero() && v.Kind() != reflect.Bool {
			continue
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		compared++
		if diff := cmp.Diff(fmt.Sprint(v.Interface()), fmt.Sprint(property["default"])); diff != "" {
			t.Errorf("%s: the schema's default (-want +got):\n%s", at, diff)
		}
		if words := abouts[owner(value.Type(), f)+"."+jsonKey(f)].Default; v.Kind() == reflect.String && !strings.HasPrefix(words, v.String()) {
			t.Errorf("%s: want words that begin with the default, %s; got %s", at, v.String(), words)
		}
	}
	return compared
}

func TestDefaultsOfElementsAreInTheSchemaToo(t *testing.T) {
	schema, err := inlined(KindDistribution)
	if err != nil {
		t.Fatal(err)
	}
	text, err := JSON(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"default": "Delete"`, `"default": "IfNotPresent"`, `"default": "never"`, `"default": "RollingUpdate"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %s in the schema", want)
		}
	}
}

func TestKeysAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] || k.Meaning == "" || k.Type == "" {
			t.Errorf("want each key once, with type and meaning, got %+v", k)
		}
		seen[k.Path] = true
	}
	for _, want := range []string{"apiVersion", "metadata.name", "spec.images.driver.tag", "spec.storageClasses.extra[].name", "spec.roles.controller.tolerations[].key", "spec.roles.node"} {
		if !seen[want] {
			t.Errorf("want %s among the keys", want)
		}
	}
	if seen["spec.roles.node.replicas"] {
		t.Error("want what controller and node share listed for the controller alone")
	}
}
