package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
)

// The two roles of the driver.
const (
	ControllerRole = "controller"
	NodeRole       = "node"
)

// Setting is one row of Settings.
type Setting struct {
	Key      string // below spec; the chart has the value under the same key
	Decision string // its public id; empty: the key. The value of one decision on several settings is an object
	Role     string // whose pods read it; empty: both
	Flag     string // of the driver; empty: none, something else in the pods reads the variable
	Variable string // in the environment of the pods, which manifests/ puts into the flag
	Default  any    // nil: empty
	Bounds   Bounds
	Meaning  string
	Reason   string // for the default
	IfSet    string // what the reason adds for any other value
}

// ID is the public id of the decision on the setting, and the field of the decision's value that is the setting's; empty: the whole.
func (s Setting) ID() (id, field string) {
	if s.Decision == "" {
		return s.Key, ""
	}
	return s.Decision, strings.TrimPrefix(s.Key, s.Decision+".")
}

// Of is the value in a configuration, and whether that has one.
func (s Setting) Of(spec Spec) (value any, given bool) {
	_, v := s.in(reflect.ValueOf(&spec).Elem())
	given = !v.IsZero()
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return reflect.Zero(v.Type().Elem()).Interface(), false
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Map {
		given = v.Len() > 0
		if v.IsNil() { // plan.yaml says {}, and null would read as unknown
			v = reflect.MakeMap(v.Type())
		}
	}
	return v.Interface(), given
}

func (s Setting) in(v reflect.Value) (reflect.Type, reflect.Value) {
	var t reflect.Type
	for key := range strings.SplitSeq(s.Key, ".") {
		t = v.Type()
		f, found := field(t, key)
		if !found {
			panic("v1alpha1: setting " + s.Key + " has no field")
		}
		v = v.FieldByIndex(f.Index)
	}
	return t, v
}

func (s Setting) fillIn(spec *Spec) {
	_, v := s.in(reflect.ValueOf(spec).Elem())
	if s.Default == nil || !v.IsZero() {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(reflect.ValueOf(s.Default))
}

// name is the key of abouts and enums.
func (s Setting) name() string {
	t, _ := s.in(reflect.ValueOf(&Spec{}).Elem())
	return t.Name() + s.Key[strings.LastIndex(s.Key, "."):]
}

func settingAbouts() map[string]about {
	all := map[string]about{}
	for _, s := range Settings {
		byDefault := None
		if s.Default != nil {
			byDefault = fmt.Sprint(s.Default)
		}
		all[s.name()] = about{s.Meaning, byDefault, s.Bounds.refused(s)}
	}
	return all
}

func settingEnums() map[string][]any {
	all := map[string][]any{}
	for _, s := range Settings {
		if e, ok := s.Bounds.(interface{ values() []any }); ok {
			all[s.name()] = e.values()
		}
	}
	return all
}
