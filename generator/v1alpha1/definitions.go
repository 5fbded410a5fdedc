package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// typeKey holds the name of the type that an object was made of. No schema that is printed has it.
const typeKey = "\x00type"

// beside are the keys that a reference keeps beside it: they are about the key, not about what it holds.
var beside = []string{"description", "default"}

// defineOnce moves what a schema says more than once below $defs.
func defineOnce(schema map[string]any) map[string]any {
	d := definitions{count: map[string]int{}, names: map[string]string{}, all: map[string]any{}}
	d.tally(schema)
	result := d.shorten(schema).(map[string]any)
	if len(d.all) > 0 {
		result["$defs"] = d.all
	}
	return result
}

type definitions struct {
	count map[string]int    // of each object, by its text
	names map[string]string // of those that are defined
	all   map[string]any
}

// shared is the part of an object that a definition can hold, and its text. It is false for a schema that is not of an object with a type.
func shared(schema any) (map[string]any, string, bool) {
	s, _ := schema.(map[string]any)
	if s[typeKey] == nil || s["$id"] != nil {
		return nil, "", false
	}
	s = maps.Clone(s)
	for _, key := range beside {
		delete(s, key)
	}
	text, err := json.Marshal(s)
	return s, string(text), err == nil
}

func (d *definitions) tally(schema any) {
	if _, text, ok := shared(schema); ok {
		d.count[text]++
	}
	each(schema, func(_ string, value any) { d.tally(value) })
}

// each calls f for everything below a schema, in a fixed order.
func each(schema any, f func(key string, value any)) {
	switch s := schema.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(s)) {
			f(key, s[key])
		}
	case []any:
		for _, value := range s {
			f("", value)
		}
	}
}

// shorten puts a reference in the place of each object that is there more than once.
func (d *definitions) shorten(schema any) any {
	object, text, ok := shared(schema)
	if !ok || d.count[text] < 2 {
		return d.inside(schema)
	}
	if d.names[text] == "" {
		name := object[typeKey].(string)
		for i := 2; d.all[name] != nil; i++ { // another object of this type
			name = fmt.Sprintf("%s%d", object[typeKey], i)
		}
		d.names[text], d.all[name] = name, true // taken
		d.all[name] = d.inside(object)
	}
	ref := map[string]any{"$ref": "#/$defs/" + d.names[text]}
	for _, key := range beside {
		if value, there := schema.(map[string]any)[key]; there {
			ref[key] = value
		}
	}
	return ref
}

func (d *definitions) inside(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		short := map[string]any{}
		each(s, func(key string, value any) {
			if key != typeKey {
				short[key] = d.shorten(value)
			}
		})
		return short
	case []any:
		short := make([]any, 0, len(s))
		each(s, func(_ string, value any) { short = append(short, d.shorten(value)) })
		return short
	}
	return schema
}
