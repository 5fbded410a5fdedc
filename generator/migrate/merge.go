package migrate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// merged is what several documents propose together.
type merged struct {
	into  v1alpha1.Distribution
	first map[string]string // key of the Distribution to the document that gave it
}

// add takes over what a document proposes. Two documents with different values for one key are an error: neither is better than the
// other. Errors: ErrFile.
func (m *merged) add(file string, d v1alpha1.Distribution) error {
	return m.walk(file, "", reflect.ValueOf(&m.into).Elem(), reflect.ValueOf(d))
}

func (m *merged) walk(file, path string, into, from reflect.Value) error {
	if from.IsZero() {
		return nil
	}
	switch from.Kind() {
	case reflect.Struct:
		var problems []error
		for i := range from.NumField() {
			problems = append(problems, m.walk(file, join(path, jsonKey(from.Type().Field(i))), into.Field(i), from.Field(i)))
		}
		return errors.Join(problems...)
	case reflect.Map:
		if into.IsNil() {
			into.Set(reflect.MakeMap(into.Type()))
		}
		var problems []error
		for _, key := range from.MapKeys() {
			value := reflect.New(into.Type().Elem()).Elem()
			if there := into.MapIndex(key); there.IsValid() {
				value.Set(there)
			}
			problems = append(problems, m.set(file, join(path, key.String()), value, from.MapIndex(key), into.MapIndex(key).IsValid()))
			into.SetMapIndex(key, value)
		}
		return errors.Join(problems...)
	}
	return m.set(file, path, into, from, !into.IsZero())
}

// set writes one value, or compares it with the one that is there.
func (m *merged) set(file, path string, into, from reflect.Value, there bool) error {
	switch {
	case !there:
		into.Set(from)
		m.first[path] = file
	case !reflect.DeepEqual(into.Interface(), from.Interface()):
		return fmt.Errorf("%w: %s and %s have different values for %s; leave out the one that is not in use", ErrFile, m.first[path], file, path)
	}
	return nil
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

func jsonKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
