package v1alpha1

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// about describes a key of a Distribution for people.
type about struct {
	Meaning string
	// Default is what an absent key means; empty for a key that only holds others.
	Default string
	// Refused are the values that are a mistake, besides those of another kind; empty without any.
	Refused string
}

// abouts are by type and JSON key, as enums are. The JSON schema and the reference come from these tables, and no other place describes keys.
var abouts = merge(specAbouts, settingAbouts(), classAbouts, podAbouts, placementAbouts)

func merge[T any](tables ...map[string]T) map[string]T {
	all := map[string]T{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// description is the text of a key in the schema; empty without an about.
func (a about) description() string {
	text := a.Meaning
	if a.Default != "" {
		text += " Default: " + a.Default + "."
	}
	if a.Refused != "" {
		text += " Refused: " + a.Refused + "."
	}
	return text
}

// Key is one key of a Distribution, as a reference lists it.
type Key struct {
	Path    string // spec.images.*.tag: * is any name, [] an element of a list
	Type    string // what it holds, in words
	Meaning string
	Default string
	Refused string
}

// Keys are all of a Distribution's, in their order. What several places share is listed once: the later one names the first.
func Keys() []Key {
	w := keyWalk{first: map[reflect.Type]string{}}
	w.walk("", reflect.TypeFor[Distribution]())
	return w.keys
}

type keyWalk struct {
	keys  []Key
	first map[reflect.Type]string // where a type's keys are listed
}

func (w *keyWalk) walk(path string, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name := jsonKey(f)
		if name == "" {
			continue
		}
		a := abouts[owner(t, f)+"."+name]
		k := Key{Path: strings.TrimPrefix(path+"."+name, "."), Meaning: a.Meaning, Default: a.Default, Refused: a.Refused}
		inner, below := element(f.Type)
		k.Type = typeName(f.Type, enums[owner(t, f)+"."+name])
		before, again := w.first[inner]
		if again {
			k.Meaning += " Its keys are those of `" + before + "`."
		}
		w.keys = append(w.keys, k)
		if inner.Kind() == reflect.Struct && !again {
			w.first[inner] = k.Path
			w.walk(k.Path+below, inner)
		}
	}
}

// element is what a list or map holds, and how its place is written in a path; any other type is itself.
func element(t reflect.Type) (reflect.Type, string) {
	switch t.Kind() {
	case reflect.Pointer:
		return element(t.Elem())
	case reflect.Slice:
		return t.Elem(), "[]"
	case reflect.Map:
		return t.Elem(), ".*"
	}
	return t, ""
}

func typeName(t reflect.Type, enum []any) string {
	if enum != nil {
		var values []string
		for _, v := range enum {
			values = append(values, v.(string))
		}
		return "one of " + strings.Join(values, ", ")
	}
	switch t {
	case reflect.TypeFor[IntOrAuto]():
		return "number or auto"
	case reflect.TypeFor[IntOrPercent]():
		return "number or percentage"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), nil)
	case reflect.Slice:
		return "list of " + plural(typeName(t.Elem(), nil))
	case reflect.Map:
		return plural(typeName(t.Elem(), nil)) + " by name"
	case reflect.Struct:
		return "object"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "number"
	}
	return "text"
}

func plural(noun string) string {
	if slices.Contains([]string{"text", "object", "number"}, noun) {
		return noun + "s"
	}
	return noun
}
