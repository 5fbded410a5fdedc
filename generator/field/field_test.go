package field

import (
	"reflect"
	"slices"
	"testing"
)

func FuzzAFoundFieldIsFoundAgain(f *testing.F) {
	object := map[string]any{
		"metadata": map[string]any{"name": "x", "annotations": map[string]any{"a.b": "1", "a": map[string]any{"b": "2", "c": "3"}}},
		"spec":     map[string]any{"list": []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}, map[string]any{"name": "two"}, "three"}},
	}
	for _, path := range []string{"name", "annotations.a.b", "annotations.a.c", "list[one].name", "list[0]", "list[two]", "list[3]", "list[", "..", "[]"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		value, at, found := Find(object, path)
		if !found {
			_ = Near(object, path)
			return
		}
		again, same, found := Find(object, at.String())
		if !found || !slices.Equal(at, same) || !reflect.DeepEqual(value, again) {
			t.Errorf("%q is %v = %v, which is %v = %v", path, at, value, same, again)
		}
	})
}
