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
			_, _, _ = Near(object, path)
			return
		}
		again, same, found := Find(object, at.String())
		if !found || !slices.Equal(at, same) || !reflect.DeepEqual(value, again) {
			t.Errorf("%q is %v = %v, which is %v = %v", path, at, value, same, again)
		}
	})
}

func TestNearSaysWhichWordOfAPathIsWrong(t *testing.T) {
	object := map[string]any{"kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "driver", "image": "x"}, map[string]any{"name": "attacher"}}, "volumes": []any{},
	}}}}
	for _, c := range []struct {
		path, where, word string
		keys              []string
	}{
		{"knd", "", "knd", []string{"kind", "spec"}},
		{"containers[drivr]", "spec.template.spec.containers", "[drivr]", []string{"[attacher]", "[driver]"}},
		{"containers[drivr].image", "spec.template.spec.containers", "[drivr]", []string{"[attacher]", "[driver]"}},
		{"containers.driver.image", "spec.template.spec.containers", "driver", []string{"[attacher]", "[driver]"}},
		{"containers[driver].imag", "spec.template.spec.containers[driver]", "imag", []string{"image", "name"}},
		{"spec.templat.spec", "spec", "templat", []string{"template"}},
		{"volumes[0].name", "", "volumes", []string{"kind", "spec"}},
	} {
		keys, where, word := Near(object, c.path)
		if !slices.Equal(keys, c.keys) || where.String() != c.where || word != c.word {
			t.Errorf("%s: want %v in %q without %q, got %v in %q without %q", c.path, c.keys, c.where, c.word, keys, where, word)
		}
	}
}
